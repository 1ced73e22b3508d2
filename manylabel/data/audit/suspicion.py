"""Images that can be read but are probably not what somebody wanted to label."""

from __future__ import annotations

from typing import Any

import numpy as np

from manylabel.data.audit.duplicates import BLANK
from manylabel.data.audit.inspection import Inspection
from manylabel.data.table import Table

TINY = 32  # pixels of the short side
NARROW = 10.0  # long side over short side
HUGE = 25.0  # times the pixels of the median image
PLACEHOLDER = 3  # copies with different labels: "image not available"

KINDS = {
    "blank": "of nearly one colour",
    "tiny": f"with a side under {TINY} pixels",
    "narrow": f"more than {NARROW:g} times as long as wide",
    "huge": f"with more than {HUGE:g} times the pixels of the median image",
    "placeholder": "that stand for images with different labels",
}


def suspicious(table: Table, inspection: Inspection, contradicting: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Images with the kind of suspicion (see KINDS) and the figure behind it, in the order of the kinds."""
    facts, readable = inspection.facts, inspection.readable
    width, height = facts["width"].astype(np.int64), facts["height"].astype(np.int64)
    short, long = np.minimum(width, height), np.maximum(width, height)
    typical = float(np.median((width * height)[readable])) if readable.any() else 0.0
    tests = {
        "blank": facts["deviation"] < BLANK,
        "tiny": short < TINY,
        "narrow": long > NARROW * short,
        "huge": width * height > HUGE * typical,
    }
    found: list[dict[str, str]] = [
        {"image": str(table.keys[row]), "kind": kind, "detail": f"{width[row]} × {height[row]} pixels"}
        for kind, test in tests.items()
        for row in np.flatnonzero(test & readable).tolist()
    ]
    return found + [
        {"image": group["images"][0], "kind": "placeholder", "detail": f"{group['size']} images are this picture"}
        for group in contradicting
        if group["size"] >= PLACEHOLDER
    ]

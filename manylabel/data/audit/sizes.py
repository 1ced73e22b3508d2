"""How large the images are, in pixels and bytes, of what kind, and whether their label file says so, too."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from manylabel.data.audit.inspection import Inspection
from manylabel.data.table import Table

MOST_DOTS = 2000  # different sizes that are listed; the most frequent


def three(values: np.ndarray) -> dict[str, float]:
    """Zeros of nothing."""
    low, middle, high = np.percentile(values, [0, 50, 100]).tolist() if len(values) else (0, 0, 0)
    if values.dtype.kind in "iu":
        return {"smallest": int(low), "median": int(middle), "largest": int(high)}
    return {"smallest": round(low, 3), "median": round(middle, 3), "largest": round(high, 3)}


def image_sizes(inspection: Inspection) -> dict[str, Any]:
    """Sides, aspect (width over height), bytes, formats, and how many images have each size."""
    facts = inspection.facts[inspection.readable]
    size = np.stack([facts["width"], facts["height"]], axis=1)  # [n, 2]
    pixels, images = np.unique(size, axis=0, return_counts=True)
    most = np.argsort(-images, kind="stable")[:MOST_DOTS]
    formats = Counter(name.decode() or "drawn" for name in facts["format"].tolist())
    return {
        "short_side": three(size.min(axis=1)),
        "long_side": three(size.max(axis=1)),
        "aspect": three(size[:, 0] / size[:, 1]),
        "bytes": {**three(facts["bytes"]), "total": int(facts["bytes"].sum())},
        "formats": dict(formats.most_common()),
        "different": len(pixels),
        "most_frequent": [[int(w), int(h), int(n)] for (w, h), n in zip(pixels[most], images[most], strict=True)],
    }


def wrong_sizes(table: Table, inspection: Inspection, most: int = 100) -> dict[str, Any]:
    """How many differ, how many of these only in that width and height are swapped, and the first few of each kind.

    Swapped is `turned`: cameras store a photo on its side and note how to turn it. We read it upright, while the size and
    the boxes of the label file are those of the photo as it is stored.
    """
    if table.sizes is None:
        return {"count": 0, "turned": 0, "images": []}
    told = table.sizes.astype(np.int64)  # [n, 2]
    found = np.stack([inspection.facts["width"], inspection.facts["height"]], axis=1).astype(np.int64)
    differs = (told > 0).all(axis=1) & inspection.readable & (told != found).any(axis=1)
    turned = differs & (told == found[:, ::-1]).all(axis=1)
    first = [np.flatnonzero(which)[:most] for which in (differs & ~turned, turned)]
    return {
        "count": int(differs.sum()),
        "turned": int(turned.sum()),
        "images": [
            {
                "image": str(table.keys[row]),
                "told": told[row].tolist(),
                "found": found[row].tolist(),
                "turned": bool(turned[row]),
            }
            for row in np.concatenate(first).tolist()
        ],
    }

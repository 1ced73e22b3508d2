"""How large the images are, in pixels and bytes, and of what kind."""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

import numpy as np

from manylabel.data.audit.inspection import Inspection

MOST_DOTS = 2000  # different sizes that are listed; the most frequent


class Range(TypedDict):
    """Whole numbers of what is whole."""

    smallest: float
    median: float
    largest: float


class Bytes(Range):
    total: int


class ImageSizes(TypedDict):
    short_side: Range
    long_side: Range
    aspect: Range
    bytes: Bytes
    formats: dict[str, int]  # the most frequent first
    different: int
    most_frequent: list[list[int]]  # width, height, images


def three(values: np.ndarray) -> Range:
    """Zeros of nothing."""
    low, middle, high = np.percentile(values, [0, 50, 100]).tolist() if len(values) else (0, 0, 0)
    if values.dtype.kind in "iu":
        return {"smallest": int(low), "median": int(middle), "largest": int(high)}
    return {"smallest": round(low, 3), "median": round(middle, 3), "largest": round(high, 3)}


def image_sizes(inspection: Inspection) -> ImageSizes:
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

"""Precision against recall: the mean over the labels, and a form small enough for a page with ten thousand of them."""

from __future__ import annotations

import struct
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Sequence

Points = Sequence[tuple[float, float]]  # (recall, precision)

FULL = 65535  # a share 0..1 in 16 bits: finer than any screen, a third of the size of decimal digits
STEPS = 100


def pack(points: Points) -> str:
    """Recalls, then precisions, as base64 of little-endian 16-bit numbers, ordered by recall."""
    ordered = sorted(points, key=lambda point: point[0])
    values = [round(share * FULL) for axis in (0, 1) for share in (point[axis] for point in ordered)]
    return b64encode(struct.pack(f"<{len(values)}H", *values)).decode("ascii")


def mean(curves: Sequence[Points | None]) -> Points:
    """Mean precision over the labels at evenly spaced recalls; labels without a curve do not count."""
    given = [sorted(curve, key=lambda point: point[0]) for curve in curves if curve]
    grid = [step / STEPS for step in range(STEPS + 1)]
    if not given:
        return []
    total = [0.0] * len(grid)
    for curve in given:
        recalls = [recall for recall, _ in curve]
        for i, recall in enumerate(grid):
            total[i] += _precision_at(recall, recalls, curve)
    return [(recall, value / len(given)) for recall, value in zip(grid, total, strict=True)]


def _precision_at(recall: float, recalls: Sequence[float], curve: Points) -> float:
    """Straight lines between the points, level beyond the ends."""
    right = bisect_right(recalls, recall)
    if right == 0:
        return curve[0][1]
    if right == len(curve):
        return curve[-1][1]
    (r0, p0), (r1, p1) = curve[right - 1], curve[right]
    return p0 + (p1 - p0) * (recall - r0) / (r1 - r0)

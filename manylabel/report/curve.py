"""Precision against recall: the mean over the labels, and a form small enough for a page with ten thousand of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

import numpy as np

Points = Sequence[tuple[float, float]]  # (recall, precision)

FULL = 65535  # a share 0..1 in 16 bits: finer than any screen, and shorter than decimal digits
STEPS = 100


def pack(points: Points) -> str:
    """Recalls, then precisions, as base64 of little-endian 16-bit numbers, ordered by recall."""
    shares = np.asarray(_by_recall(points), np.float64).T  # [2, points]
    return b64encode(np.rint(shares * FULL).astype("<u2").tobytes()).decode("ascii")


def mean(curves: Sequence[Points | None]) -> Points:
    """Mean precision over the labels at evenly spaced recalls; labels without a curve do not count.

    Between the points of a curve lies a straight line, beyond its ends it is level.
    """
    given = [np.asarray(_by_recall(curve), np.float64).T for curve in curves if curve]
    if not given:
        return []
    grid = np.linspace(0.0, 1.0, STEPS + 1)
    total = np.zeros_like(grid)
    for recall, precision in given:
        total += np.interp(grid, recall, precision)
    return list(zip(grid.tolist(), (total / len(given)).tolist(), strict=True))


def _by_recall(points: Points) -> Points:
    # Stable: points of equal recall keep their order, so the curve falls or rises where it did.
    return sorted(points, key=lambda point: point[0])

"""How well a map points at what it should: against the boxes of the label."""

from __future__ import annotations

import numpy as np


def box_area(boxes: np.ndarray, width: int, height: int) -> np.ndarray:
    """Pixels of a picture whose centres lie in one of the boxes [m, 4], in shares of its sides. [height, width] bool"""
    x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
    inside = np.zeros((height, width), bool)
    for left, top, right, bottom in boxes:
        inside |= ((y >= top) & (y < bottom))[:, None] & ((x >= left) & (x < right))[None]
    return inside


def points_inside(heat: np.ndarray, inside: np.ndarray) -> bool:
    """Pointing game: whether the highest place lies in a box. A map that is 0 everywhere points nowhere."""
    return bool(heat.max() > 0 and inside.flat[heat.argmax()])


def energy_inside(heat: np.ndarray, inside: np.ndarray) -> float:
    """Share of the map's sum that lies in the boxes; 0 for a map that is 0 everywhere."""
    total = float(heat.sum(dtype=np.float64))
    return float(heat[inside].sum(dtype=np.float64)) / total if total > 0 else 0.0

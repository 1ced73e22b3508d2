"""Which of many things hang together, from the pairs that do."""

from __future__ import annotations

import numpy as np


def connected(n: int, pairs: np.ndarray) -> np.ndarray:
    """The smallest number that each of 0 … n-1 is connected with. [pairs, 2] → [n] int64"""
    group = np.arange(n)
    while True:
        low = group[pairs].min(axis=1)
        before = group.copy()
        for end in (0, 1):
            np.minimum.at(group, before[pairs[:, end]], low)
        while (group[group] != group).any():
            group = group[group]
        if (group == before).all():
            return group

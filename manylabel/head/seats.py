"""Which label sits at which place of which group query, when labels that training never told come beside those it told.

Groups of trained labels are fixed when training begins. All others sit in groups of their own behind them, so that no
trained label's query changes, however many come later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manylabel.head.grouping import group_size

BLOCK = 1024  # labels compared at once
NEAR = 1e-2  # by how much a vector's entries (mean square 1) may differ and be the same word: other software, half precision


@dataclass(frozen=True)
class Seats:
    """n labels; S of training in ⌈S/g⌉ groups, then the others."""

    size: int  # g
    slot: np.ndarray  # [n]: place (slot mod g) of group (slot div g)
    trained: np.ndarray  # [n]: which trained label each is, S = none of them
    trained_slot: np.ndarray  # [S]

    @property
    def groups(self) -> int:
        """Up to the last that a label asked for sits in; at least those of training."""
        return max(self.trained_groups, int(self.slot.max(initial=-1)) // self.size + 1)

    @property
    def trained_groups(self) -> int:
        return group_size(len(self.trained_slot), self.size)


def behind(trained_slot: np.ndarray, size: int) -> int:
    """The first place after the groups of training."""
    return group_size(len(trained_slot), size) * size


def known_among(vectors: np.ndarray, trained: np.ndarray) -> np.ndarray:
    """Which trained label has each vector, S where none has. [n, d], [S, d], with entries of mean square 1 → [n]"""
    found = np.full(len(vectors), len(trained))
    for start in range(0, len(vectors) if len(trained) else 0, BLOCK):
        part = vectors[start : start + BLOCK]
        nearest = (part @ trained.T).argmax(axis=1)
        found[start : start + BLOCK] = np.where(apart(part, trained[nearest]), len(trained), nearest)
    return found


def apart(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of them are not the same words, row by row. [n, d], [n, d] → [n]"""
    far: np.ndarray = (np.abs(vectors - others) > NEAR * np.maximum(1, np.abs(others))).any(axis=1)
    return far

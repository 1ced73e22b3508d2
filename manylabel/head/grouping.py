"""Which label belongs to which group query: N labels in K groups of g = ⌈N/K⌉ places.

A grouping is a permutation-like vector: label i sits in slot[i], which is place (slot mod g) of group (slot div g), as in
Eq. 3 of the ML-Decoder paper. With K ∤ N the last group has places that no label uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from manylabel.config import option
from manylabel.error import ConfigError
from manylabel.require import require

USUAL_GROUPS = 100  # ML-Decoder's K for thousands of labels


@dataclass(frozen=True)
class GroupOptions:
    """Settings of heads in which labels can share a query."""

    groups: int | None = option(
        None, "group queries K; none = one per label up to 100 labels (and with shared pooling), otherwise 100"
    )
    grouping: Literal["order", "random", "cooccurrence", "text"] = option(
        "order", "which labels share a query: neighbours, any, those often seen together, or of like meaning"
    )
    grouping_seed: int = option(0, "with grouping=random: another seed, other groups")

    def __post_init__(self) -> None:
        post_init = getattr(super(), "__post_init__", None)
        if post_init:
            post_init()
        require(self.groups is None or self.groups >= 1, "head.groups", self.groups, "none, or 1 or more")

    def labels_per_query(self, num_labels: int, full: bool = False) -> int:
        """g = ⌈N/K⌉; `full` = a query for each label where nothing else was asked for."""
        if self.groups is not None and self.groups > num_labels:
            raise ConfigError(
                f"head.groups={self.groups} is more than the {num_labels} labels; "
                f"give {num_labels} at most (a query per label), or leave it out"
            )
        usual = num_labels if full else min(num_labels, USUAL_GROUPS)
        return group_size(num_labels, self.groups if self.groups is not None else usual)


def group_size(num_labels: int, groups: int) -> int:
    """g = ⌈N/K⌉"""
    return -(-num_labels // groups)


def in_order(num_labels: int) -> np.ndarray:
    """slot[i] = i: the labels as they come. [N]"""
    return np.arange(num_labels)


def at_random(num_labels: int, seed: int) -> np.ndarray:
    """What the paper describes. [N]"""
    return np.random.default_rng(seed).permutation(num_labels)


def by_likeness(likeness: np.ndarray, size: int) -> np.ndarray:
    """Groups of labels that are alike: the label with the most company left starts a group and takes its nearest. [N]

    `likeness` [N, N] is symmetric, larger is nearer. Greedy, N²; groups are full but for the last.
    """
    count = len(likeness)
    near = np.array(likeness, dtype=np.float32)
    np.fill_diagonal(near, -np.inf)
    left = np.ones(count, bool)
    slot = np.empty(count, np.int64)
    company = np.where(np.isfinite(near), near, 0).sum(axis=1)
    place = 0
    while left.any():
        start = int(np.where(left, company, -np.inf).argmax())
        left[start] = False
        others = np.flatnonzero(left)
        # by the mean likeness to the group so far, not to its first label only: groups stay compact
        group, total = [start], near[start].copy()
        for _ in range(min(size - 1, len(others))):
            following = int(np.where(left, total, -np.inf).argmax())
            left[following] = False
            group.append(following)
            total = total + near[following]
        slot[group] = np.arange(place, place + len(group))
        place += len(group)
    return slot


def cooccurrence_likeness(together: np.ndarray) -> np.ndarray:
    """Cosine between labels as sets of images, from counts of images that have both (the diagonal: that have it). [N, N]"""
    counts = np.asarray(together, np.float64)
    norm = np.sqrt(np.maximum(np.diag(counts), 1))
    return counts / norm / norm[:, None]


def text_likeness(vectors: np.ndarray) -> np.ndarray:
    """Cosine between text vectors. [N, N]"""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosine: np.ndarray = unit @ unit.T
    return cosine


def slots(
    how: str,
    num_labels: int,
    size: int,
    *,
    seed: int = 0,
    together: np.ndarray | None = None,
    vectors: np.ndarray | None = None,
) -> np.ndarray:
    """slot[i] of every label, for the grouping of this name. [N]"""
    if how == "order" or size == 1:
        return in_order(num_labels)
    if how == "random":
        return at_random(num_labels, seed)
    if how == "cooccurrence":
        if together is None:
            raise ConfigError(
                "head.grouping=cooccurrence needs the labels of the training images, and there are none here; "
                "use head.grouping=random or order"
            )
        return by_likeness(cooccurrence_likeness(together), size)
    if vectors is None:
        raise ConfigError(
            "head.grouping=text needs text vectors of the labels: choose where they come from, e.g. --set text.name=glove"
        )
    return by_likeness(text_likeness(vectors), size)

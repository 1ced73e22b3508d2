"""Which labels come together: always, nearly always, as often as chance has it, or never."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypedDict, TypeVar

import numpy as np

from manylabel.data.audit.counts import Counts, count_among
from manylabel.data.table import Table

IMPLIED = 0.95  # share of a label's images from which another one "nearly always" comes with it
ENOUGH = 10  # images with a label before anything is said about its company
ENOUGH_TO_BE_THE_SAME = 5
EXPECTED = 20.0  # images with both that chance would give, when there is none: then they exclude each other
MOST_PAIRS = 200  # of each kind that are listed
SAMPLE = 300  # images of a label that are asked first where most entries are unknown
MOST_NAMES = 30  # labels of the picture
WORK = 500_000_000  # pairs of labels of one image that are counted; beyond it a part of the images is


E = TypeVar("E")

# 'with' is a word of Python, so it cannot be written as a field
Implied = TypedDict("Implied", {"label": int, "with": int, "share": float, "support": int})


class Exclusive(TypedDict):
    label: int
    other: int
    expected: float  # images with both


@dataclass
class Company:
    """Pairs of labels by number; the lists hold the most telling MOST_PAIRS, the counts say how many there are."""

    images: int  # that were counted: all, unless there are very many labels on very many images
    implied: list[Implied] = field(default_factory=list)
    implied_count: int = 0
    identical: list[tuple[int, int]] = field(default_factory=list)
    identical_count: int = 0
    exclusive: list[Exclusive] = field(default_factory=list)
    exclusive_count: int = 0
    pairs: list[tuple[int, int, int]] = field(default_factory=list)  # label, other, images with both
    names: list[int] = field(default_factory=list)  # the most frequent labels
    counts: list[list[int]] = field(default_factory=list)  # [names, names] images with both


class _Best(Generic[E]):
    """The `MOST_PAIRS` entries with the largest values, and how many were offered."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, E]] = []
        self.offered = 0

    def offer(self, value: float, entry: E) -> None:
        self.offered += 1
        heapq.heappush(self.heap, (value, -self.offered, entry))  # of equals the first stays
        if len(self.heap) > MOST_PAIRS:
            heapq.heappop(self.heap)

    def entries(self) -> list[E]:
        return [entry for _, _, entry in sorted(self.heap, key=lambda item: (-item[0], -item[1]))]


def company(table: Table, counts: Counts, seed: int = 0) -> Company:
    """Look at every label's images once. Unknown entries never count."""
    chosen = _chosen_images(counts, seed)
    names = [int(i) for i in np.argsort(-counts.support, kind="stable")[:MOST_NAMES] if counts.support[i] > 0]
    implied, exclusive = _Best[Implied](), _Best[Exclusive]()
    identical, pairs = _Best[tuple[int, int]](), _Best[tuple[int, int, int]]()
    result = Company(counts.images if chosen is None else int(chosen.sum()))
    result.names, result.counts = names, [[0] * len(names) for _ in names]
    for label in np.flatnonzero(counts.support).tolist():
        images = counts.images_with(label)
        if chosen is not None:
            images = images[chosen[images]]
        joint = _joint(counts, images)  # [L] images with both
        if label in names:
            result.counts[names.index(label)] = joint[names].tolist()
        for other in _largest(joint, label).tolist():
            pairs.offer(int(joint[other]), (label, other, int(joint[other])))
        if len(images) < ENOUGH_TO_BE_THE_SAME:
            continue
        others = [(other, seen) for other, seen in _nearly_always(table, counts, images, joint) if other != label]
        for value, found in _implied(label, joint, others):
            implied.offer(value, found)
        for other in _identical(counts, label, len(images), joint, others, chosen):
            identical.offer(len(images), (label, other))
        for other, expected in _never(table, counts, images, joint):
            if other > label:
                exclusive.offer(expected, {"label": label, "other": other, "expected": round(expected, 1)})
    result.implied, result.implied_count = implied.entries(), implied.offered
    result.identical, result.identical_count = identical.entries(), identical.offered
    result.exclusive, result.exclusive_count = exclusive.entries(), exclusive.offered
    result.pairs = pairs.entries()
    return result


def _nearly_always(table: Table, counts: Counts, images: np.ndarray, joint: np.ndarray) -> Iterator[tuple[int, int]]:
    """Labels that (nearly) all of these images have, with the number of them where it is known."""
    if counts.unknown_share == 0:
        others = np.flatnonzero(joint >= IMPLIED * len(images))
        seen = np.full(len(others), len(images))
    else:
        others = np.flatnonzero(joint >= ENOUGH_TO_BE_THE_SAME)
        few = images[:: -(-len(images) // SAMPLE)]  # what is far from it even among some need not be counted
        present, known = count_among(table, few, others)
        others = others[present + 1 + np.sqrt(known) >= IMPLIED * known]  # more than chance could be wrong by
        seen = count_among(table, images, others)[1]
    sure = joint[others] >= IMPLIED * seen
    yield from zip(others[sure].tolist(), seen[sure].tolist(), strict=True)


def _implied(label: int, joint: np.ndarray, others: list[tuple[int, int]]) -> Iterator[tuple[float, Implied]]:
    """Of equal shares the one with more images tells more."""
    for other, seen in others:
        if seen >= ENOUGH:
            share = int(joint[other]) / seen
            yield share + 1e-9 * seen, {"label": label, "with": other, "share": round(share, 4), "support": seen}


def _identical(
    counts: Counts, label: int, images: int, joint: np.ndarray, others: list[tuple[int, int]], chosen: np.ndarray | None
) -> Iterator[int]:
    """Those of the later labels that are on exactly this one's images."""
    for other, seen in others:
        if other > label and int(joint[other]) == seen == images and _same(counts, label, other, chosen):
            yield other


def _never(table: Table, counts: Counts, images: np.ndarray, joint: np.ndarray) -> Iterator[tuple[int, float]]:
    """Labels that none of these images has, with the number of them that would have it by chance."""
    share = counts.support / np.maximum(counts.known, 1)  # [L]
    others = np.flatnonzero((joint == 0) & (len(images) * share >= EXPECTED))
    expected = len(images) * share[others]
    if counts.unknown_share and len(others):
        few = images[:: -(-len(images) // SAMPLE)]
        expected *= count_among(table, few, others)[1] / len(few)
    enough = expected >= EXPECTED
    yield from zip(others[enough].tolist(), expected[enough].tolist(), strict=True)


def _chosen_images(counts: Counts, seed: int) -> np.ndarray | None:
    """None for all images, or which of them when counting all would take very long. [n] bool"""
    work = float((counts.per_image.astype(np.float64) ** 2).sum())
    if work <= WORK:
        return None
    return np.random.default_rng(seed).random(counts.images) < WORK / work


def _joint(counts: Counts, images: np.ndarray) -> np.ndarray:
    """How many of these images have each label. [L]"""
    starts, lengths = counts.row_start[images], counts.per_image[images].astype(np.int64)
    ends = np.cumsum(lengths)
    offsets = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return np.bincount(counts.labels_of[np.repeat(starts, lengths) + offsets], minlength=len(counts.support))


def _largest(joint: np.ndarray, label: int) -> np.ndarray:
    """Later labels that come most often with this one; no more can be among the most frequent pairs."""
    others = np.flatnonzero(joint[label + 1 :]) + label + 1
    if len(others) > MOST_PAIRS:
        others = others[np.argpartition(-joint[others], MOST_PAIRS)[:MOST_PAIRS]]
    return others


def _same(counts: Counts, a: int, b: int, chosen: np.ndarray | None) -> bool:
    """Whether two labels, known of the same number of images, are on the same ones."""
    if counts.support[a] != counts.support[b] or counts.absent[a] != counts.absent[b]:
        return False
    return chosen is not None or bool((counts.images_with(a) == counts.images_with(b)).all())

"""Which images to train on and which to hold out, so that every label is on both sides in the wanted shares.

Iterative stratification: the images of the rarest label are dealt out first, each to the part that lacks that label
most. Then three repairs, none of which undoes the one before it: labels missing from a part, the sizes of the parts,
and the shares of the labels, by swapping images.
Few images that share many rare labels can make it impossible that every label is everywhere (three images, and a
label on each two of them, have no such halves); then as many are as a search finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product

import numpy as np

from manylabel.error import DataError
from manylabel.labels import PRESENT

CHUNK = 4096  # rows looked at together, so that memory stays small
ROUNDS = 20  # of swaps; each looks at every image once, and the gain soon ends
SWAPS = 1000  # at most in one round, because every swap makes the prices of the others a little wrong


def stratified_folds(matrix: np.ndarray, shares: Sequence[float], seed: int = 0) -> np.ndarray:
    """The part (0, 1, …) of each row of a tri-state label matrix; the parts have the given shares of every label.

    A label with enough positives has one in every part, however small the part. Unknown entries do not count.
    """
    check_shares(shares)
    if len(matrix) < len(shares):
        raise DataError(f"{len(matrix)} image(s) cannot fill {len(shares)} parts; add images or ask for fewer parts")
    random = np.random.default_rng(seed)
    split = _Split(matrix, np.asarray(shares, np.float64))
    _deal(split, random)
    _mend_labels(split, random)
    _mend_sizes(split)
    _swap(split)
    return split.part


def check_shares(shares: Sequence[float]) -> None:
    if len(shares) < 1 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise DataError(f"the shares {tuple(shares)} must be above 0 and sum to 1")


class _Split:
    """Images in parts, and what each part has and wants of each label.

    Images without a label share one more label, so that they are spread as well; that one may be missing from a part.
    """

    def __init__(self, matrix: np.ndarray, shares: np.ndarray) -> None:
        n, parts = len(matrix), len(shares)
        self.matrix = matrix
        self.columns, self.starts = label_lists(matrix)
        self.support = np.bincount(self.columns, minlength=matrix.shape[1] + 1)  # [L + 1]
        self.real = np.arange(len(self.support)) < matrix.shape[1]
        self.wanted = _wanted(shares, self.support)  # [parts, L + 1]
        self.weight = 1.0 / np.maximum(self.support, 1) ** 2  # of an image too many: as a squared share of the label
        self.size = np.zeros(parts, np.int64)
        self.wanted_size = _whole_sizes(shares, n)
        self.has = np.zeros((parts, matrix.shape[1] + 1), np.int64)
        self.part = np.full(n, -1)

    def labels(self, image: int) -> np.ndarray:
        return self.columns[self.starts[image] : self.starts[image + 1]]

    def put(self, image: int, part: int) -> None:
        labels = self.labels(image)
        if (old := self.part[image]) >= 0:
            self.has[old, labels] -= 1
            self.size[old] -= 1
        self.has[part, labels] += 1
        self.size[part] += 1
        self.part[image] = part

    def images(self, label: int) -> np.ndarray:
        if label < self.matrix.shape[1]:
            return np.flatnonzero(self.matrix[:, label] == PRESENT)
        return np.flatnonzero(self.columns[self.starts[:-1]] == label)

    def missing(self) -> np.ndarray:
        """In how many parts each label could be but is not. [L + 1]"""
        return self.real * (np.minimum(self.support, len(self.has)) - (self.has > 0).sum(axis=0))

    def prices(self, source: int, target: int, labels: np.ndarray | slice = slice(None)) -> np.ndarray:
        """What each label says to moving an image: below 0 is for the better, infinite if it would go missing."""
        has, gets = self.has[source, labels], self.has[target, labels]
        excess = (gets - self.wanted[target, labels]) - (has - self.wanted[source, labels])
        return np.where(self.real[labels] & (has == 1) & (gets > 0), np.inf, self.weight[labels] * (excess + 1))

    def cost(self, image: int, target: int) -> float:
        return float(self.prices(self.part[image], target, self.labels(image)).sum())

    def cheapest(self, source: int, target: int) -> np.ndarray:
        """The images of `source` that may go to `target`, the cheapest first."""
        costs = np.add.reduceat(self.prices(source, target)[self.columns], self.starts[:-1])
        images = np.flatnonzero((self.part == source) & np.isfinite(costs))
        return images[np.argsort(costs[images], kind="stable")]


def label_lists(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All images' labels one after the other, and where each image's begin."""
    found, lengths = [], []
    for start in range(0, len(matrix), CHUNK):
        present = matrix[start : start + CHUNK] == PRESENT
        present = np.column_stack([present, ~present.any(axis=1)])  # the label of those that have none
        found.append(np.nonzero(present)[1].astype(np.int32))
        lengths.append(present.sum(axis=1))
    return np.concatenate(found), np.concatenate([[0], np.cumsum(np.concatenate(lengths))])


def _whole_sizes(shares: np.ndarray, n: int) -> np.ndarray:
    """Whole numbers close to shares × n that sum to n, none of them 0."""
    sizes = np.maximum(np.floor(shares * n), 1)
    while sizes.sum() != n:
        step = np.sign(n - sizes.sum())
        lack = np.where((sizes > 1) | (step > 0), step * (shares * n - sizes), -np.inf)
        sizes[np.argmax(lack)] += step
    return sizes.astype(np.int64)


def _wanted(shares: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Positives each part should get: its share, but one at least where there are enough, one at most where not."""
    wanted = np.outer(shares, support)  # [parts, L + 1]
    few = support < len(shares)
    wanted[:, few] = np.minimum(wanted[:, few], 1)
    for _ in shares:  # what lifts the small to one is taken from those above one
        lifted = np.maximum(wanted, 1)
        spare = lifted - 1
        surplus = (lifted.sum(axis=0) - support) / np.maximum(spare.sum(axis=0), 1e-12)
        wanted = np.where(few, wanted, lifted - spare * np.clip(surplus, 0, 1))
    return wanted


def _deal(split: _Split, random: np.random.Generator) -> None:
    """Each image to the part that lacks its rarest label most; then its other labels decide, then the sizes."""
    left = split.support.copy()
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, len(split.part) + 1)))
        images = split.images(label)
        for image in random.permutation(images[split.part[images] < 0]):
            labels = split.labels(image)
            lack = split.wanted[:, labels] - split.has[:, labels]  # [parts, labels]
            first = lack[:, labels == label][:, 0].tolist()
            others = (lack @ split.weight[labels]).tolist()
            room = (split.wanted_size - split.size).tolist()
            split.put(image, max(zip(first, others, room, range(len(room)), strict=True))[-1])
            left[labels] -= 1


def _mend_labels(split: _Split, random: np.random.Generator) -> None:
    """Bring labels to parts where they are missing, by a random walk: it may have to break one to mend two others."""
    best, fewest = split.part.copy(), int(split.missing().sum())
    for _ in range(min(200 + 20 * fewest, 5000)):
        broken = np.flatnonzero(split.missing())
        if not len(broken):
            return
        label = int(random.choice(broken))
        images = random.permutation(split.images(label)).tolist()
        if random.random() < 0.1:  # out of a dead end
            split.put(images[0], int(random.integers(len(split.has))))
        else:
            spare = [image for image in images if split.has[split.part[image], label] > 1][:200]
            empty = np.flatnonzero(split.has[:, label] == 0).tolist()
            split.put(*min(product(spare, empty), key=lambda move: _harm(split, *move)))
        if (now := int(split.missing().sum())) < fewest:
            best, fewest = split.part.copy(), now
    for image in np.flatnonzero(split.part != best).tolist():
        split.put(image, int(best[image]))


def _harm(split: _Split, image: int, target: int) -> int:
    """Labels that a move breaks, less those that it mends."""
    labels = split.labels(image)
    broken = (split.has[split.part[image], labels] == 1) & (split.has[target, labels] > 0)
    mended = (split.has[split.part[image], labels] > 1) & (split.has[target, labels] == 0)
    return int(broken.sum()) - int(mended.sum())


def _mend_sizes(split: _Split) -> None:
    """Move the cheapest images out of parts that are too large, as far as no label goes missing."""
    moved = True
    while moved:
        moved = False
        for source, target in permutations(range(len(split.size)), 2):
            excess = split.size - split.wanted_size
            count = min(excess[source], -excess[target])
            for image in split.cheapest(source, target)[: -(-count // 4)] if count > 0 else ():
                if np.isfinite(split.cost(image, target)):
                    split.put(image, target)
                    moved = True


def _swap(split: _Split) -> None:
    """Exchange images between two parts while that brings labels closer to their shares."""
    for _ in range(ROUNDS):
        before = split.part.copy()
        for a, b in combinations(range(len(split.size)), 2):
            for there, back in zip(split.cheapest(a, b)[:SWAPS], split.cheapest(b, a)[:SWAPS], strict=False):
                gain = split.cost(there, b)
                if not np.isfinite(gain):
                    continue
                split.put(there, b)
                if gain + split.cost(back, a) < -1e-12:
                    split.put(back, a)
                else:
                    split.put(there, a)
        if (before == split.part).all():
            return

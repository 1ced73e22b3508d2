"""Which images to train on and which to hold out, so that every label is on both sides in the wanted shares.

Iterative stratification: the images of the rarest label are dealt out first, each to the part that lacks that label
most. Then three repairs, none of which undoes the one before it: labels missing from a part, the sizes of the parts,
and the shares of the labels, by swapping images. What is dealt out may be whole groups of images (one patient, one
film, near-duplicates); an image is a group of one.
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
SIZE_WEIGHT = 0.5  # of the size of a part against the shares of all labels together, where groups are moved


def stratified_folds(
    matrix: np.ndarray, shares: Sequence[float], seed: int = 0, groups: np.ndarray | None = None
) -> np.ndarray:
    """The part (0, 1, …) of each row of a tri-state label matrix; the parts have the given shares of every label, and rows
    of one group ([n], any ids) share a part.

    A label with enough positives has one in every part, however small the part. Unknown entries do not count.
    """
    if len(shares) < 1 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise DataError(f"the shares {tuple(shares)} must be above 0 and sum to 1")
    number = np.arange(len(matrix)) if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    count = int(number.max()) + 1 if len(number) else 0
    if count < len(shares):
        what = "image(s)" if groups is None else "group(s) of images"
        raise DataError(f"{count} {what} cannot fill {len(shares)} parts; add images or ask for fewer parts")
    random = np.random.default_rng(seed)
    split = _Split(matrix, number, np.asarray(shares, np.float64))
    _deal(split, random)
    _mend_labels(split, random)
    _mend_sizes(split)
    _swap(split)
    if groups is not None:
        _move(split)
    return split.part[number]


class _Split:
    """Groups in parts, and what each part has and wants of each label.

    Images without a label share one more label, so that they are spread as well; that one may be missing from a part.
    """

    def __init__(self, matrix: np.ndarray, number: np.ndarray, shares: np.ndarray) -> None:
        n, parts, labels = len(matrix), len(shares), matrix.shape[1] + 1
        pairs = _pairs(matrix, number)
        found, self.count = np.unique(pairs, return_counts=True)  # of each entry: images of a group with a label
        group, self.columns = np.divmod(found, labels)
        self.starts = np.searchsorted(group, np.arange(number.max() + 2))  # where the entries of each group begin
        self.weights = np.bincount(number)  # images of each group
        order = np.argsort(self.columns, kind="stable")
        self.groups, self.counts = group[order], self.count[order]  # of label 0, of label 1, …
        self.ends = np.cumsum(np.bincount(self.columns, minlength=labels))
        self.support = np.bincount(self.columns, self.count, minlength=labels).astype(np.int64)  # [L + 1] images
        self.holders = np.bincount(self.columns, minlength=labels)  # [L + 1] groups
        self.real = np.arange(labels) < matrix.shape[1]
        self.wanted = _wanted(shares, self.support)  # [parts, L + 1]
        self.weight = 1.0 / np.maximum(self.support, 1) ** 2  # of an image too many: as a squared share of the label
        self.size = np.zeros(parts, np.int64)
        self.wanted_size = _whole_sizes(shares, n)
        self.has = np.zeros((parts, labels), np.int64)
        self.part = np.full(len(self.weights), -1)

    def entries(self, group: int) -> slice:
        return slice(self.starts[group], self.starts[group + 1])

    def put(self, group: int, part: int) -> None:
        labels, count = self.columns[self.entries(group)], self.count[self.entries(group)]
        if (old := self.part[group]) >= 0:
            self.has[old, labels] -= count
            self.size[old] -= self.weights[group]
        self.has[part, labels] += count
        self.size[part] += self.weights[group]
        self.part[group] = part

    def having(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """(groups with this label, images of each that have it)"""
        some = slice(self.ends[label - 1] if label else 0, self.ends[label])
        return self.groups[some], self.counts[some]

    def missing(self) -> np.ndarray:
        """In how many parts each label could be but is not. [L + 1]"""
        return self.real * (np.minimum(self.holders, len(self.has)) - (self.has > 0).sum(axis=0))

    def prices(self, source: int, target: int, entries: slice = slice(None)) -> np.ndarray:
        """What each label of each group says to moving it: below 0 is for the better, infinite if it would go missing."""
        labels, count = self.columns[entries], self.count[entries]
        has, gets = self.has[source, labels], self.has[target, labels]
        excess = (gets - self.wanted[target, labels]) - (has - self.wanted[source, labels])
        last = self.real[labels] & (has == count) & (gets > 0)
        return np.where(last, np.inf, self.weight[labels] * count * (excess + count))

    def cost(self, group: int, target: int) -> float:
        return float(self.prices(self.part[group], target, self.entries(group)).sum())

    def cheapest(self, source: int, target: int) -> np.ndarray:
        """The groups of `source` that may go to `target`, the cheapest first."""
        costs = np.add.reduceat(self.prices(source, target), self.starts[:-1])
        groups = np.flatnonzero((self.part == source) & np.isfinite(costs))
        return groups[np.argsort(costs[groups], kind="stable")]


def _pairs(matrix: np.ndarray, number: np.ndarray) -> np.ndarray:
    """group · (L + 1) + label of every image's labels; L for one that has none."""
    found = []
    for start in range(0, len(matrix), CHUNK):
        present = matrix[start : start + CHUNK] == PRESENT
        rows, labels = np.nonzero(np.column_stack([present, ~present.any(axis=1)]))
        found.append(number[start + rows] * (matrix.shape[1] + 1) + labels)
    return np.concatenate(found)


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
    """Each group to the part that lacks its rarest label most; then its other labels decide, then the sizes."""
    left = split.holders.copy()
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, len(split.part) + 1)))
        groups = split.having(label)[0]
        dealt = random.permutation(groups[split.part[groups] < 0])
        for group in dealt[np.argsort(-split.weights[dealt], kind="stable")]:  # the large ones first
            labels, count = split.columns[split.entries(group)], split.count[split.entries(group)]
            lack = split.wanted[:, labels] - split.has[:, labels]  # [parts, labels]
            first = lack[:, labels == label][:, 0].tolist()
            others = (lack @ (split.weight[labels] * count)).tolist()
            room = (split.wanted_size - split.size).tolist()
            split.put(group, max(zip(first, others, room, range(len(room)), strict=True))[-1])
            left[labels] -= 1


def _mend_labels(split: _Split, random: np.random.Generator) -> None:
    """Bring labels to parts where they are missing, by a random walk: it may have to break one to mend two others."""
    best, fewest = split.part.copy(), int(split.missing().sum())
    for _ in range(min(200 + 20 * fewest, 5000)):
        broken = np.flatnonzero(split.missing())
        if not len(broken):
            return
        label = int(random.choice(broken))
        groups, counts = split.having(label)
        order = random.permutation(len(groups))
        groups, counts = groups[order], counts[order]
        if random.random() < 0.1:  # out of a dead end
            split.put(int(groups[0]), int(random.integers(len(split.has))))
        else:
            spare = groups[split.has[split.part[groups], label] > counts][:200].tolist()
            empty = np.flatnonzero(split.has[:, label] == 0).tolist()
            split.put(*min(product(spare, empty), key=lambda move: _harm(split, *move)))
        if (now := int(split.missing().sum())) < fewest:
            best, fewest = split.part.copy(), now
    for group in np.flatnonzero(split.part != best).tolist():
        split.put(group, int(best[group]))


def _harm(split: _Split, group: int, target: int) -> int:
    """Labels that a move breaks, less those that it mends."""
    labels, count = split.columns[split.entries(group)], split.count[split.entries(group)]
    last, new = split.has[split.part[group], labels] == count, split.has[target, labels] == 0
    return int((last & ~new).sum()) - int((~last & new).sum())


def _mend_sizes(split: _Split) -> None:
    """Move the cheapest groups out of parts that are too large, as far as no label goes missing."""
    moved = True
    while moved:
        moved = False
        for source, target in permutations(range(len(split.size)), 2):
            excess = split.size - split.wanted_size
            count = min(excess[source], -excess[target])
            for group in split.cheapest(source, target)[: -(-count // 4)] if count > 0 else ():
                if split.weights[group] <= count and np.isfinite(split.cost(group, target)):
                    split.put(group, target)
                    count -= split.weights[group]
                    moved = True


def _swap(split: _Split) -> None:
    """Exchange groups of one size between two parts while that brings labels closer to their shares."""
    for _ in range(ROUNDS):
        before = split.part.copy()
        for a, b in combinations(range(len(split.size)), 2):
            for there, back in zip(split.cheapest(a, b)[:SWAPS], split.cheapest(b, a)[:SWAPS], strict=False):
                gain = split.cost(there, b)
                if not np.isfinite(gain) or split.weights[there] != split.weights[back]:
                    continue
                split.put(there, b)
                if gain + split.cost(back, a) < -1e-12:
                    split.put(back, a)
                else:
                    split.put(there, a)
        if (before == split.part).all():
            return


def _move(split: _Split) -> None:
    """Move groups, whose sizes rarely fit, while that brings labels and sizes together closer to what is wanted."""
    unit = SIZE_WEIGHT * np.count_nonzero(split.support) / split.weights.sum() ** 2
    for _ in range(ROUNDS):
        moved = False
        for source, target in permutations(range(len(split.size)), 2):
            for group in split.cheapest(source, target)[:SWAPS]:
                excess = split.size - split.wanted_size
                weight = split.weights[group]
                size = unit * weight * (excess[target] - excess[source] + weight)
                if split.cost(group, target) + size < -1e-12:
                    split.put(group, target)
                    moved = True
        if not moved:
            return

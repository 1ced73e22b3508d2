"""A split that keeps every group of images (one patient, one film, near-duplicates) in one part.

Whole groups are dealt out, those with the rarest label first and of these the large ones, each to the part where it
does least harm; then groups move as long as that brings the labels' shares and the parts' sizes closer to what is
wanted. Harm is Σ over labels l of ((has_l − wanted_l) / support_l)², with the size of the part as one more label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manylabel.data.stratify import check_shares, label_lists
from manylabel.error import DataError

ROUNDS = 50  # of moves; each looks at all groups
SIZE_WEIGHT = 0.5  # of the size of a part against the shares of all labels together


def grouped_folds(matrix: np.ndarray, groups: np.ndarray, shares: Sequence[float], seed: int = 0) -> np.ndarray:
    """The part (0, 1, …) of each row of a tri-state label matrix; rows of one group (any ids, [n]) share a part.

    A label that enough groups have is in every part where a search finds a way.
    """
    check_shares(shares)
    number = np.unique(groups, return_inverse=True)[1].reshape(-1)  # [n] 0 … G-1
    if number.max() + 1 < len(shares):
        raise DataError(f"{number.max() + 1} group(s) of images cannot fill {len(shares)} parts; ask for fewer parts")
    split = _Groups(matrix, number, np.asarray(shares, np.float64))
    split.deal(np.random.default_rng(seed))
    split.mend()
    split.improve()
    return split.part[number]


class _Groups:
    """Groups in parts. Entry i of `label` and `count` says how many images of a group have a label; the group's
    entries begin at starts[group]. The last label is one that every image has: it stands for the size."""

    def __init__(self, matrix: np.ndarray, number: np.ndarray, shares: np.ndarray) -> None:
        columns, starts = label_lists(matrix)
        size = matrix.shape[1] + 1  # position of the label that stands for the size
        of_image = np.repeat(number, np.diff(starts))
        pairs = np.concatenate([of_image * (size + 1) + columns, number * (size + 1) + size])
        found, count = np.unique(pairs, return_counts=True)
        self.label = (found % (size + 1)).astype(np.int64)
        self.count = count.astype(np.float64)
        self.starts = np.searchsorted(found, np.arange(number.max() + 2) * (size + 1))
        self.support = np.bincount(self.label, self.count, minlength=size + 1)
        self.holders = np.bincount(self.label, minlength=size + 1)  # groups that have each label
        self.weight = 1.0 / np.maximum(self.support, 1) ** 2
        self.weight[size] *= SIZE_WEIGHT * np.count_nonzero(self.support)
        self.needed = self.holders >= len(shares)  # labels that could be in every part
        self.needed[size - 1] = False  # images without a label may be missing from a part
        self.wanted = np.outer(shares, self.support)  # [parts, L + 2]
        self.has = np.zeros_like(self.wanted)
        self.holds = np.zeros(self.wanted.shape, np.int64)  # groups of a part that have each label
        self.part = np.full(len(self.starts) - 1, -1)

    def entries(self, group: int) -> slice:
        return slice(self.starts[group], self.starts[group + 1])

    def put(self, group: int, part: int) -> None:
        entries = self.entries(group)
        label, count = self.label[entries], self.count[entries]
        if (old := self.part[group]) >= 0:
            self.has[old, label] -= count
            self.holds[old, label] -= 1
        self.has[part, label] += count
        self.holds[part, label] += 1
        self.part[group] = part

    def deal(self, random: np.random.Generator) -> None:
        rarest = np.minimum.reduceat(self.holders[self.label], self.starts[:-1])
        sizes = np.add.reduceat(self.count, self.starts[:-1])
        for group in np.lexsort((random.random(len(sizes)), -sizes, rarest)):
            entries = self.entries(group)
            label, count = self.label[entries], self.count[entries]
            excess = self.has[:, label] - self.wanted[:, label]  # [parts, labels of the group]
            harm = (self.weight[label] * count * (2 * excess + count)).sum(axis=1)
            empty = (self.needed[label] & (self.holds[:, label] == 0)).sum(axis=1)
            self.put(int(group), int(np.lexsort((harm, -empty))[0] if empty.any() else np.argmin(harm)))

    def _prices(self, source: int, target: int) -> np.ndarray:
        """What moving each group from one part to another adds to the harm; infinite if a label would go missing."""
        excess = self.has - self.wanted
        entry = 2 * self.weight[self.label] * self.count
        entry = entry * (excess[target, self.label] - excess[source, self.label] + self.count)
        last = self.needed & (self.holds[source] == 1)
        entry[last[self.label]] = np.inf
        return np.add.reduceat(entry, self.starts[:-1])

    def mend(self) -> None:
        """Bring each label to the parts that lack it, by the cheapest group that its own part can spare."""
        for part, label in np.argwhere(self.needed & (self.holds == 0)):
            if self.holds[part, label]:
                continue
            having = np.searchsorted(self.starts, np.flatnonzero(self.label == label), side="right") - 1
            offers = []
            for source in np.unique(self.part[having]):
                prices = self._prices(int(source), int(part))
                offers += [(prices[g], g) for g in having[self.part[having] == source] if np.isfinite(prices[g])]
            if offers:
                self.put(int(min(offers)[1]), int(part))

    def improve(self) -> None:
        parts = range(len(self.has))
        for _ in range(ROUNDS):
            moved = 0
            for source in parts:
                for target in parts:
                    if source != target:
                        moved += self._move(source, target)
            if not moved:
                return

    def _move(self, source: int, target: int) -> int:
        """The moves that pay, best first; each is priced again because those before it changed the balance."""
        prices = np.where(self.part == source, self._prices(source, target), np.inf)
        moved = 0
        for group in np.argsort(prices, kind="stable")[:200]:
            if prices[group] >= -1e-12:
                break
            if self._price(int(group), source, target) < -1e-12:
                self.put(int(group), target)
                moved += 1
        return moved

    def _price(self, group: int, source: int, target: int) -> float:
        entries = self.entries(group)
        label, count = self.label[entries], self.count[entries]
        if (self.needed[label] & (self.holds[source, label] == 1)).any():
            return np.inf
        excess = self.has[:, label] - self.wanted[:, label]
        return float((2 * self.weight[label] * count * (excess[target] - excess[source] + count)).sum())

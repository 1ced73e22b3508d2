"""How often each label is present and known, in one pass over the matrix and with little memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manylabel.data.table import Table
from manylabel.labels import ABSENT, PRESENT

CELLS = 1 << 26  # of the matrix looked at together
USUAL = {"train": 0, "val": 1, "test": 2}


@dataclass(frozen=True)
class Counts:
    """The label matrix in numbers; unknown entries count as neither present nor absent."""

    images: int
    support: np.ndarray  # [L] images with the label
    absent: np.ndarray  # [L] images known not to have it
    by_split: dict[str, np.ndarray]  # support within each split
    per_image: np.ndarray  # [n] labels of each image

    @property
    def known(self) -> np.ndarray:
        return self.support + self.absent

    @property
    def unknown_share(self) -> float:
        return 1.0 - float(self.known.sum()) / (self.images * len(self.support))


def count_labels(table: Table) -> Counts:
    images, labels = table.matrix.shape
    names = (
        [] if table.split is None else sorted(set(table.split.tolist()), key=lambda name: (USUAL.get(name, 3), name))
    )
    by_split = {name: np.zeros(labels, np.int64) for name in names}
    support, absent = np.zeros((2, labels), np.int64)
    per_image = np.zeros(images, np.int32)
    step = max(1, CELLS // labels)
    for start in range(0, images, step):
        some = slice(start, start + step)
        present = table.matrix[some] == PRESENT
        per_image[some] = present.sum(axis=1)
        support += present.sum(axis=0)
        absent += (table.matrix[some] == ABSENT).sum(axis=0)
        for name in names:
            by_split[name] += present[table.split[some] == name].sum(axis=0)  # type: ignore[index]
    return Counts(images, support, absent, by_split, per_image)

"""How often each label is present and known, in one pass over the matrix and with little memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manylabel.data.table import Table
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

CELLS = 1 << 26  # of the matrix looked at together


@dataclass(frozen=True)
class Counts:
    """The label matrix in numbers, and its positive entries as a sparse matrix by rows and by columns."""

    images: int
    support: np.ndarray  # [L] images with the label
    absent: np.ndarray  # [L] images known not to have it
    by_split: dict[str, np.ndarray]  # support within each split
    per_image: np.ndarray  # [n] labels of each image
    labels_of: np.ndarray  # labels of image 0, of image 1, …; those of i from row_start[i] to row_start[i + 1]
    row_start: np.ndarray  # [n + 1]
    images_of: np.ndarray  # images of label 0, of label 1, …
    column_start: np.ndarray  # [L + 1]

    @property
    def known(self) -> np.ndarray:
        return self.support + self.absent

    @property
    def unknown_share(self) -> float:
        return 1.0 - float(self.known.sum()) / (self.images * len(self.support))

    def images_with(self, label: int) -> np.ndarray:
        """Rows of the images that have a label, in order."""
        return self.images_of[self.column_start[label] : self.column_start[label + 1]]


def count_labels(table: Table) -> Counts:
    """Counts of a table; unknown entries count as neither present nor absent."""
    images, labels = table.matrix.shape
    per_image = np.zeros(images, np.int32)
    absent = np.zeros(labels, np.int64)
    found = [np.zeros(0, np.int32)]
    step = max(1, CELLS // labels)
    for start in range(0, images, step):
        block = table.matrix[start : start + step]
        present = block == PRESENT
        per_image[start : start + step] = present.sum(axis=1)
        found.append(np.nonzero(present)[1].astype(np.int32))
        absent += (block == ABSENT).sum(axis=0)
    labels_of = np.concatenate(found)
    image_of = np.repeat(np.arange(images, dtype=np.int32), per_image)
    support = np.bincount(labels_of, minlength=labels)
    splits = [] if table.split is None else sorted(set(table.split.tolist()), key=_usual_order)
    return Counts(
        images=images,
        support=support,
        absent=absent,
        by_split={
            name: np.bincount(labels_of[(table.split == name)[image_of]], minlength=labels)  # type: ignore[index]
            for name in splits
        },
        per_image=per_image,
        labels_of=labels_of,
        row_start=np.concatenate([[0], np.cumsum(per_image, dtype=np.int64)]),
        images_of=image_of[np.argsort(labels_of, kind="stable")],
        column_start=np.concatenate([[0], np.cumsum(support)]),
    )


def _usual_order(split: str) -> tuple[int, str]:
    usual = ("train", "val", "test")
    return (usual.index(split) if split in usual else len(usual), split)


def count_among(table: Table, rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of these rows, how many have each of these labels, and how many say anything about it. 2 × [len(labels)]"""
    present, known = np.zeros((2, len(labels)), np.int64)
    step = max(1, CELLS // max(1, len(labels)))
    for start in range(0, len(rows), step):
        block = table.matrix[np.ix_(rows[start : start + step], labels)]
        present += (block == PRESENT).sum(axis=0)
        known += (block != UNKNOWN).sum(axis=0)
    return present, known

"""The one internal form of every data set: image keys, a tri-state label matrix, splits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from manylabel.data.objects import Objects
from manylabel.data.source import ImageSource
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import UNKNOWN, LabelSpace
from manylabel.suggest import closest

SPLITS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val"}
SPLITS |= {"test": "test", "testing": "test"}


@dataclass(frozen=True)
class Table:
    """Images with labels. Rows of `keys`, `matrix`, `split` and `groups` belong together."""

    name: str
    source: ImageSource
    keys: np.ndarray  # [n] of str
    labels: LabelSpace
    matrix: np.ndarray  # [n, L] int8: present, absent, unknown
    split: np.ndarray | None = None  # [n] of 'train', 'val', 'test'; None = the data does not say
    notes: tuple[str, ...] = ()  # what the reader guessed or found odd, for the user to see
    groups: np.ndarray | None = None  # [n] of str: images of one group stay on one side of a split; '' = of none
    sizes: np.ndarray | None = None  # [n, 2] int32: width and height as the label file tells them; 0 where it does not
    objects: Objects | None = None  # boxes and masks, where the data has them
    hierarchy: Hierarchy | None = None  # parents, synonyms and descriptions of the labels, where a file gives them

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self, split: str) -> np.ndarray:
        """Row numbers of one split."""
        if self.split is None:
            raise DataError(f"{self.name} has no split column, so there is no part {split!r} in it")
        names = sorted(set(self.split.tolist()))
        if split not in names:
            raise DataError(f"{self.name} has no images in split {split!r}{closest(split, names)}")
        return np.flatnonzero(self.split == split)

    def part(self, split: str | None) -> tuple[Table, str | None]:
        """(the images of a split, its name); without `split` val where there is one, else all images, without a name."""
        if self.split is None and split is not None:
            raise DataError(f"{self.name} has no split column; leave --split out to judge on all {len(self)} images")
        chosen = split or ("val" if self.split is not None and "val" in self.split else None)
        return (self if chosen is None else self.subset(self.rows(chosen))), chosen

    def subset(self, rows: np.ndarray) -> Table:
        return replace(
            self,
            keys=self.keys[rows],
            matrix=self.matrix[rows],
            split=None if self.split is None else self.split[rows],
            groups=None if self.groups is None else self.groups[rows],
            sizes=None if self.sizes is None else self.sizes[rows],
            objects=None if self.objects is None else self.objects.subset(rows),
        )

    def with_labels(self, labels: LabelSpace, hierarchy: Hierarchy | None = None) -> Table:
        """The same images with another model's labels: its order, and unknown where this data never says.

        With the model's hierarchy its synonyms count as well, and a present label makes its ancestors present.
        """
        matrix = np.full((len(self), len(labels)), UNKNOWN, np.int8)
        known_as = [(hierarchy.name(name) if hierarchy else None) or name for name in self.labels]
        shared = [(labels.index(name), theirs) for theirs, name in enumerate(known_as) if name in labels]
        if not shared:
            raise DataError(f"{self.name} and the model have no label in common")
        for ours, theirs in shared:
            matrix[:, ours] = np.maximum(matrix[:, ours], self.matrix[:, theirs])  # PRESENT > ABSENT > UNKNOWN
        if hierarchy is not None:
            matrix = hierarchy.imply(matrix, labels)
        there = {ours for ours, _ in shared}
        missing = [name for i, name in enumerate(labels) if i not in there]
        extra = [self.labels.names[i] for i, name in enumerate(known_as) if name not in labels]
        notes = list(self.notes)
        if missing:
            notes.append(
                f"{len(missing)} labels of the model are not in this data and are not judged: {_some(missing)}"
            )
        if extra:
            notes.append(f"{len(extra)} labels of this data are unknown to the model and are left out: {_some(extra)}")
        objects = self.objects
        if objects is not None:
            positions = np.full(len(self.labels), -1)
            positions[[theirs for _, theirs in shared]] = [ours for ours, _ in shared]
            objects = objects.relabelled(positions)
        return replace(self, labels=labels, matrix=matrix, objects=objects, notes=tuple(notes))


def _some(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def fingerprint(keys: np.ndarray) -> str:
    """Which images these are, by name, in any order."""
    return hashlib.sha256("\0".join(sorted(map(str, keys))).encode()).hexdigest()

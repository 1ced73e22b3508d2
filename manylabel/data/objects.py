"""Boxes and masks of a table, in columns: entry i is one object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manylabel.data.mask import AnyMask


@dataclass(frozen=True)
class Objects:
    """All objects of a table, sorted by the row of their image."""

    row: np.ndarray  # [m] int64, row of the table
    label: np.ndarray  # [m] int32, position in the label space
    box: np.ndarray  # [m, 4] float32: left, top, right, bottom in pixels of the stored image
    crowd: np.ndarray  # [m] bool: many of them in one box
    difficult: np.ndarray  # [m] bool: counts neither for nor against a model
    masks: tuple[AnyMask | None, ...]  # [m]

    def __len__(self) -> int:
        return len(self.row)

    def of(self, row: int) -> np.ndarray:
        """Numbers of the objects in one image."""
        return np.arange(np.searchsorted(self.row, row), np.searchsorted(self.row, row, side="right"))

    def _take(self, entries: np.ndarray, row: np.ndarray, label: np.ndarray) -> Objects:
        masks = tuple(self.masks[i] for i in entries)
        return Objects(row, label, self.box[entries], self.crowd[entries], self.difficult[entries], masks)

    def subset(self, rows: np.ndarray) -> Objects:
        """For the table that has just these rows, in this order."""
        found = [self.of(int(row)) for row in rows]
        entries = np.concatenate(found) if found else np.empty(0, np.int64)
        numbers = np.repeat(np.arange(len(rows)), [len(each) for each in found])
        return self._take(entries, numbers, self.label[entries])

    def relabelled(self, positions: np.ndarray) -> Objects:
        """With label i now at positions[i]; objects whose label has none (-1) are left out."""
        entries = np.flatnonzero(positions[self.label] >= 0)
        return self._take(entries, self.row[entries], positions[self.label[entries]].astype(np.int32))

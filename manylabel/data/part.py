"""Which official parts of the data are trained on and judged, and whether images without any label count (data.parts,
data.unlabelled)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import PRESENT


def chosen_images(table: Table, config: DataConfig) -> Table:
    """The images that the settings ask for, each in the part that they give it."""
    if config.parts.train:
        table = _in_parts(table, {"train": config.parts.train, "val": config.parts.val})
    return _labelled(table) if config.unlabelled == "drop" else table


def _in_parts(table: Table, parts: Mapping[str, Sequence[str]]) -> Table:
    """`parts`: train and val, and the official parts that each is made of; images of no such part are left out."""
    if table.split is None:
        raise DataError(f"{table.name} has no official parts, so data.parts cannot choose among them; leave it out")
    split = np.full(len(table), "", "<U5")
    for name, official in parts.items():
        for part in official:
            if part not in table.split:
                there = ", ".join(sorted(set(table.split.tolist())))
                raise DataError(f"data.parts.{name}: {table.name} has no part {part!r}; it has {there}")
            split[table.split == part] = name
    told = "; ".join(f"{name} is the official {' + '.join(official)}" for name, official in parts.items())
    kept = np.flatnonzero(split != "")
    notes = (*table.notes, f"{told} (data.parts)")
    return replace(table, split=split, notes=notes).subset(kept)


def _labelled(table: Table) -> Table:
    kept = np.flatnonzero((table.matrix == PRESENT).any(axis=1))
    left_out = len(table) - len(kept)
    if not left_out:
        return table
    if not len(kept):
        raise DataError(f"{table.name}: no image shows any label, so data.unlabelled=drop would leave none")
    note = f"{left_out} images that show none of the labels are left out (data.unlabelled=drop)"
    return replace(table, notes=(*table.notes, note)).subset(kept)

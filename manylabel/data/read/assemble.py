"""Checked records → the one table."""

from __future__ import annotations

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.mask import AnyMask
from manylabel.data.objects import Objects
from manylabel.data.read.check import CheckedRecords
from manylabel.data.read.label_cells import DELIMITERS, split_names
from manylabel.data.record import Reading, Record
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, label_key

OTHER_SIGNS = ("/", "&", "+")
NOBODYS_LABELS = {"nan", "none", "null", "n/a", "na", "set()", "[]"}
LONGEST_GROUP = 1000
CHUNK = 4096  # rows of the matrix made at a time


def assemble(reading: Reading, config: DataConfig, hierarchy: Hierarchy | None = None) -> Table:
    """The table of a whole reading."""
    records = CheckedRecords(reading, config, hierarchy)
    labels = label_space(records)
    columns = _Columns(labels, reading.rest)
    for record in records:
        columns.add(record)
    columns.refuse_gaps(reading)
    return Table(
        name=reading.name or (reading.path.name if reading.path.is_dir() else reading.path.resolve().parent.name),
        source=reading.source,
        keys=np.array(columns.keys, dtype=str),
        labels=labels,
        matrix=columns.matrix(),
        split=np.array(columns.splits, dtype=str) if any(columns.splits) else None,
        groups=np.array(columns.groups, dtype=str) if any(columns.groups) else None,
        sizes=np.array(columns.sizes, np.int32) if any(map(any, columns.sizes)) else None,
        objects=columns.objects(),
        hierarchy=hierarchy,
        notes=(*reading.notes, *records.notes),
    )


def label_space(records: CheckedRecords) -> LabelSpace:
    """The labels in their order: the label file's, else the format's own, else sorted as found."""
    reading = records.reading
    if records.hierarchy is not None:
        names = records.hierarchy.names
    elif reading.labels is not None:
        names = reading.labels
        records.refuse_markup(names)
    else:
        names = tuple(sorted(records.names()))
        _look_at_names(records, names)
    if not names:
        raise DataError(f"{reading.path}: no image has a label; there is nothing to learn")
    try:
        return LabelSpace(names)
    except DataError as error:
        raise DataError(f"{reading.path}: {error}") from None


def _look_at_names(records: CheckedRecords, names: tuple[str, ...]) -> None:
    """Names that are several labels, written with another delimiter than the rest, or none at all."""
    known = set(names)
    for name in names if records.config.delimiter is None else ():
        for sign in DELIMITERS + OTHER_SIGNS:
            pieces = split_names(name, sign) if sign in name else ()
            if len(pieces) > 1 and known.issuperset(pieces):
                if sign in OTHER_SIGNS:
                    records.reading.notes.append(f"label {name!r} looks like several; --set data.delimiter={sign!r}")
                    break
                raise DataError(
                    f"{_first_with(records, name)}: {name!r} separates labels by {sign!r} where other rows do not; "
                    "use one delimiter, or name it with --set data.delimiter=…"
                )
    odd = [name for name in names if label_key(name) in NOBODYS_LABELS]
    if odd:
        records.reading.notes.append(
            f"there is a label {odd[0]!r}; if it means that there is none, leave the cell empty"
        )


def _first_with(records: CheckedRecords, name: str) -> str:
    everything = ((record, (*record.present, *record.absent, *record.unknown)) for record in records.reading.records())
    return next((record.where for record, said in everything if name in said), str(records.reading.path))


class _Columns:
    """What is collected while the records go by."""

    def __init__(self, labels: LabelSpace, rest: int) -> None:
        self.position = {name: i for i, name in enumerate(labels)}
        self.labels = labels
        self.rest = rest
        self.keys: list[str] = []
        self.splits: list[str] = []
        self.groups: list[str] = []
        self.sizes: list[tuple[int, int]] = []
        self.chunks: list[np.ndarray] = []
        self.row: list[int] = []
        self.label: list[int] = []
        self.box: list[tuple[float, ...]] = []
        self.flags: list[tuple[bool, bool]] = []
        self.masks: list[AnyMask | None] = []
        self.first_without_split = ""

    def add(self, record: Record) -> None:
        row = len(self.keys)
        if record.group is not None and len(record.group) > LONGEST_GROUP:
            raise DataError(f"{record.where}: a group of {len(record.group)} characters; is that the right column?")
        self.keys.append(record.key)
        self.splits.append(record.split or "")
        self.groups.append(record.group or "")
        self.sizes.append(record.size or (0, 0))
        if not record.split and not self.first_without_split:
            self.first_without_split = record.where
        if row % CHUNK == 0:
            self.chunks.append(np.full((CHUNK, len(self.labels)), self.rest, np.int8))
        entries = self.chunks[-1][row % CHUNK]
        for names, value in ((record.present, PRESENT), (record.absent, ABSENT), (record.unknown, UNKNOWN)):
            if names:
                entries[[self._at(name, record) for name in names]] = value
        for thing in record.things:
            self.row.append(row)
            self.label.append(self._at(thing.label, record))
            self.box.append(thing.box)
            self.flags.append((thing.crowd, thing.difficult))
            self.masks.append(thing.mask)

    def _at(self, name: str, record: Record) -> int:
        try:
            return self.position[name]
        except KeyError:
            try:
                return self.labels.index(name)
            except DataError as error:
                raise DataError(f"{record.where}: {error}; it is not in the list of labels") from None

    def refuse_gaps(self, reading: Reading) -> None:
        if any(self.splits) and not all(self.splits):
            raise DataError(
                f"{self.first_without_split}: the image is in no split while others of {reading.path.name} are; fill it in"
            )

    def matrix(self) -> np.ndarray:
        return np.concatenate(self.chunks)[: len(self.keys)]

    def objects(self) -> Objects | None:
        if not self.row:
            return None
        flags = np.array(self.flags, bool)
        return Objects(
            row=np.array(self.row, np.int64),
            label=np.array(self.label, np.int32),
            box=np.array(self.box, np.float32),
            crowd=flags[:, 0],
            difficult=flags[:, 1],
            masks=tuple(self.masks),
        )

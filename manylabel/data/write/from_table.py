"""A table as records, to be written in any format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manylabel.data.record import Record, Thing
from manylabel.data.table import Table
from manylabel.data.write.target import Content, Images
from manylabel.labels import ABSENT, PRESENT, UNKNOWN


def content_of(table: Table, images: Images = "leave") -> Content:
    """What a writer needs of this table; mostly unknown labels are written as what is known, and the other way round."""
    rest = UNKNOWN if (table.matrix == UNKNOWN).sum() > (table.matrix == ABSENT).sum() else ABSENT
    return Content(_Records(table, rest), table.labels, rest, table.source, images)


@dataclass(frozen=True)
class _Records:
    table: Table
    rest: int

    def __iter__(self) -> Iterator[Record]:
        table = self.table
        for row in range(len(table)):
            said = {value: self._names(row, value) for value in (PRESENT, ABSENT, UNKNOWN) if value != self.rest}
            yield Record(
                key=str(table.keys[row]),
                where=f"image {row + 1}",
                present=said.get(PRESENT, ()),
                absent=said.get(ABSENT, ()),
                unknown=said.get(UNKNOWN, ()),
                split=None if table.split is None else str(table.split[row]),
                group=None if table.groups is None else str(table.groups[row]) or None,
                things=self._things(row),
            )

    def _names(self, row: int, value: int) -> tuple[str, ...]:
        return tuple(self.table.labels.names[i] for i in np.flatnonzero(self.table.matrix[row] == value))

    def _things(self, row: int) -> tuple[Thing, ...]:
        objects = self.table.objects
        if objects is None:
            return ()
        return tuple(
            Thing(
                label=self.table.labels.names[objects.label[i]],
                box=tuple(objects.box[i].tolist()),  # type: ignore[arg-type]
                crowd=bool(objects.crowd[i]),
                difficult=bool(objects.difficult[i]),
                mask=objects.masks[i],
            )
            for i in objects.of(row)
        )

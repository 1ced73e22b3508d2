"""A file of rows whose images lie beside it: JSON lines, JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.places import SAMPLE, image_root
from manylabel.data.read.row import RowLayout
from manylabel.data.record import Reading, Record
from manylabel.data.source import FileSource
from manylabel.error import DataError

Rows = Iterator[tuple[str, dict[str, Any]]]  # place, fields


def read_rows(name: str, path: Path, rows: Callable[[], Rows], config: DataConfig) -> Reading:
    """The reading of rows (place, fields), which are gone through several times and never kept."""
    layout = RowLayout.of((), (row for _, row in rows()), config, path)
    notes = list(layout.notes)
    sample = (row.get(layout.file) for _, row in islice(rows(), SAMPLE))
    root = image_root(path.parent, [key for key in sample if isinstance(key, str)], config, notes)

    def records() -> Iterator[Record]:
        for where, row in rows():
            try:
                record = layout.record(row, where)
            except RecursionError:  # lists in lists in lists, a thousand deep
                raise DataError(f"{where}: nested too deep to be a row of labels") from None
            yield record

    return layout.reading(name, path, FileSource(root), records, notes)

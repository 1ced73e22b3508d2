"""Arrow tables (Parquet files, `datasets` folders) → records. The images themselves are never touched here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.finder import SAMPLE, image_root
from manylabel.data.read.class_names import class_names, columns_of_objects, named
from manylabel.data.read.columns import (
    FILE_COLUMNS,
    KIND,
    LABEL_COLUMNS,
    OBJECT_COLUMNS,
    UNKNOWN_COLUMNS,
    Columns,
    plain_name,
)
from manylabel.data.record import Reading, Record
from manylabel.data.shard.arrow_image import holds_images, row_key
from manylabel.data.source import FileSource, ImageSource
from manylabel.error import DataError

KEY = FILE_COLUMNS[0]
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Part:
    """One file or split: its rows can be asked for again and again."""

    name: str  # what the keys of its images begin with
    where: str  # for messages
    rows: int
    batches: Callable[[Sequence[str]], Iterator[Any]]  # record batches with just these columns
    split: str | None = None


@dataclass(frozen=True)
class ArrowTable:
    """Parts with the same columns."""

    path: Path
    parts: tuple[Part, ...]
    schema: Any
    features: Mapping[str, Any]
    image: str | None  # column with the images; None = they are files
    notes: list[str] = field(default_factory=list)

    def columns(self, config: DataConfig) -> list[str]:
        """Those that may say something about labels; with a column for them, others are not even read."""
        ignored = {name.lower() for name in config.ignore_columns}
        names = [
            column.name
            for column in self.schema
            if column.name != self.image
            and not ({column.name.lower(), plain_name(column.name)} & ignored)
            and not holds_images(column.type)
            and not (self.image and plain_name(column.name) in FILE_COLUMNS)
        ]
        known = [name for name in names if plain_name(name) in KIND]
        if any(plain_name(name) in LABEL_COLUMNS + OBJECT_COLUMNS for name in known):
            return known
        return [name for name in names if name in known or _is_plain_value(self.schema.field(name).type)]

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[Part, str, dict[str, Any]]]:
        """(part, where, row) of every row, classes by name."""
        classes = {name: names for name in columns if (names := class_names(self.features.get(name)))}
        for part in self.parts:
            number = 0
            for batch in part.batches(columns):
                for row in _plain(batch, f"{part.where}, after row {number}"):
                    where = f"{part.where}, row {number}"
                    for name in columns:
                        if plain_name(name) in OBJECT_COLUMNS:
                            # an empty list says that nothing is there; null, that nobody looked
                            row[name] = {} if row[name] == [] else columns_of_objects(row[name])
                        if name in classes:
                            self._name(row, name, classes[name], where)
                    if self.image is not None:
                        row[KEY] = row_key(part.name, number)
                    yield part, where, row
                    number += 1

    @staticmethod
    def _name(row: dict[str, Any], column: str, names: tuple[str, ...], where: str) -> None:
        value = row[column]
        row[column] = named(value, names, f"{where}, field {column!r}")
        if value is not None and row[column] is None and plain_name(column) in LABEL_COLUMNS:
            row[UNKNOWN_COLUMNS[0]] = list(names)

    def reading(self, source: ImageSource | None, config: DataConfig) -> Reading:
        """With `source` None the images are files beside the table."""
        columns = self.columns(config)
        known = [KEY, *columns] if self.image else columns
        layout = Columns.of((row for _, _, row in self.rows(columns)), config, self.path, known)
        self.notes.extend(layout.notes)
        if source is None:
            home = self.path if self.path.is_dir() else self.path.parent
            first = [str(row.get(layout.file) or "").strip() for _, _, row in islice(self.rows(columns), SAMPLE)]
            source = FileSource(image_root(home, first, config, self.notes))

        def records() -> Iterator[Record]:
            for part, where, row in self.rows(columns):
                record = layout.record(row, where)
                record.split = record.split or part.split
                yield record

        told = [class_names(self.features.get(name)) for name in (layout.labels, layout.objects) if name]
        names = layout.wide or (next(iter(filter(None, told))) if any(told) else None)
        return Reading(self.path, source, records, names, layout.rest, notes=self.notes)


def _plain(batch: Any, where: str) -> list[dict[str, Any]]:
    try:
        return batch.to_pylist()
    except (ValueError, ArithmeticError) as error:  # text that is none, a date that does not exist
        raise DataError(f"{where}: a value cannot be read ({' '.join(str(error).split())[:200]}); mend it") from None


def _is_plain_value(kind: Any) -> bool:
    """Something that a label's own column can hold."""
    from pyarrow import types

    checks = (types.is_boolean, types.is_integer, types.is_floating, types.is_null, types.is_string)
    return any(check(kind) for check in (*checks, types.is_large_string, types.is_dictionary))

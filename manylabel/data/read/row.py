"""Rows that are mappings (JSON objects, Parquet rows): which field is what, and one row as a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.label_cells import WIDE_CELLS, detect_delimiter, split_names
from manylabel.data.read.row_value import is_list_text, listed_names, names_in_text, row_things
from manylabel.data.read.sheet import (
    ABSENT_COLUMNS,
    FILE_COLUMNS,
    GROUP_COLUMNS,
    LABEL_COLUMNS,
    OTHER_FILE_COLUMNS,
    SPLIT_COLUMNS,
    UNKNOWN_COLUMNS,
    plain_name,
)
from manylabel.data.record import Reading, Record
from manylabel.data.source import ImageSource
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

OBJECT_COLUMNS = ("objects",)
KINDS = {
    "file": FILE_COLUMNS + OTHER_FILE_COLUMNS,
    "labels": LABEL_COLUMNS,
    "split": SPLIT_COLUMNS,
    "group": GROUP_COLUMNS,
    "unknown": UNKNOWN_COLUMNS,
    "absent": ABSENT_COLUMNS,
    "objects": OBJECT_COLUMNS,
}
COUNTERS = ("id", "index", "__index_level_0__", "unnamed:_0", "")  # numbers of rows: 0 and 1 in them are no answers
LONE_SIGNS = ("x", "X", "?")  # answers in a sheet, but here a field may be a short text


@dataclass(frozen=True)
class RowLayout:
    """Which field holds what. Names in the three label fields may be a list, or a text with a delimiter."""

    file: str
    labels: str | None = None
    split: str | None = None
    group: str | None = None
    unknown: str | None = None
    absent: str | None = None
    objects: str | None = None
    wide: tuple[str, ...] = ()  # fields that are labels themselves, with 1, 0 or nothing
    delimiter: str | None = None
    list_text: bool = False  # the texts are lists written out: "['a', 'b']"
    blank: int = UNKNOWN  # of a wide field
    count: int = 0  # rows that were looked at
    notes: tuple[str, ...] = ()

    @property
    def rest(self) -> int:
        """What a label is that a row does not mention."""
        return UNKNOWN if self.wide or self.absent is not None else ABSENT

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """In order, where the layout tells: the wide fields."""
        return self.wide or None

    def reading(
        self, name: str, path: Path, source: ImageSource, records: Callable[[], Iterator[Record]], notes: list[str]
    ) -> Reading:
        """What a reader of rows gives, with what this layout knows."""
        return Reading(name, path, source, records, self.label_names, self.rest, total=self.count, notes=notes)

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], config: DataConfig, path: Path) -> RowLayout:
        """Decided from the names and from rows, which are gone through once and not kept; fields that only rows have
        are found, too."""
        survey = _Survey(columns, config)
        delimiter = detect_delimiter(survey.texts(rows))
        if not survey.count:
            raise DataError(f"{path} has no rows; there is nothing to read")
        chosen = {kind: survey.first(names) for kind, names in KINDS.items()}
        if chosen["file"] is None:
            has = ", ".join(survey.fields) or "nothing"
            raise DataError(f"{path} has no field with the image files (it has: {has}); call it 'file_name'")
        wide = () if chosen["labels"] or chosen["objects"] else survey.wide(chosen.values())
        if not (chosen["labels"] or chosen["objects"] or wide):
            raise DataError(
                f"{path} has no field with labels (it has: {', '.join(survey.fields)}); add 'labels' with a list of "
                "names, or one field per label with 1 or 0"
            )
        return cls(
            **chosen,  # type: ignore[arg-type]
            wide=wide,
            delimiter=config.delimiter or delimiter,
            list_text=survey.all_list_text,
            blank=ABSENT if config.blank == "absent" else UNKNOWN,
            count=survey.count,
            notes=tuple(survey.notes(chosen.values(), wide, config.delimiter or delimiter)),
        )

    def record(self, row: Mapping[str, Any], where: str) -> Record:
        """One row; `where` names it in messages."""
        name = row.get(self.file)
        if not isinstance(name, str) or not name.strip():
            said = "is missing or blank" if name in (None, "") else f"is {_short(name)}, not a file name"
            raise DataError(f"{where}: field {self.file!r} {said}; fill it in or delete the row")
        present, absent, unknown = (
            self._wide_labels(row, where)
            if self.wide
            else (self._names(row, self.labels, where), self._names(row, self.absent, where), ())
        )
        unknown += self._names(row, self.unknown, where)
        things = row_things(row.get(self.objects), f"{where}, field {self.objects!r}") if self.objects else ()
        said_already = {*present, *absent, *unknown}
        present += tuple(dict.fromkeys(thing.label for thing in things if thing.label not in said_already))
        return Record(
            key=name.strip(),
            where=where,
            present=present,
            absent=absent,
            unknown=unknown,
            split=_text(row, self.split),
            group=_text(row, self.group),
            things=things,
            unlabelled=self._is_unlabelled(row),
        )

    def _is_unlabelled(self, row: Mapping[str, Any]) -> bool:
        """A row without the fields that speak of labels, or with null in them: nobody looked at this image."""
        fields = [field for field in (self.labels, self.absent, self.unknown) if field is not None]
        return self.labels is not None and all(row.get(field) is None for field in fields)

    def _names(self, row: Mapping[str, Any], column: str | None, where: str) -> tuple[str, ...]:
        value = None if column is None else row.get(column)
        if isinstance(value, str) and not self.list_text:
            return split_names(value, self.delimiter)
        place = f"{where}, field {column!r}"
        return names_in_text(value, place) if isinstance(value, str) else listed_names(value, place)

    def _wide_labels(self, row: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], ...]:
        found: dict[int, list[str]] = {PRESENT: [], ABSENT: [], UNKNOWN: []}
        for name in self.wide:
            value = row.get(name)
            meaning = wide_value(value)
            if meaning is None:
                raise DataError(
                    f"{where}, field {name!r}: {_short(value)} is not 1 or true (present), 0 or false (absent) or null; "
                    f"if it is no label, --set 'data.ignore_columns=[{name}]'"
                )
            found[self.blank if is_blank(value) else meaning].append(name)
        return tuple(found[PRESENT]), tuple(found[ABSENT]), ()  # the rest is unknown as it is


def is_blank(value: Any) -> bool:
    return value is None or value == "" or value != value


def wide_value(value: Any) -> int | None:
    """PRESENT, ABSENT or UNKNOWN; None where this is no answer about a label."""
    if is_blank(value):
        return UNKNOWN
    if not isinstance(value, (bool, int, float, str)) or value in LONE_SIGNS:
        return None
    return WIDE_CELLS.get(str(value).strip().lower())


class _Survey:
    """What the rows look like, in memory that does not grow with them."""

    def __init__(self, columns: Sequence[str], config: DataConfig) -> None:
        self._ignored = {name.lower() for name in config.ignore_columns}
        self.count = self.filled = self.list_texts = 0
        self.numbers = False  # a label is a number
        self.answers: dict[str, bool | None] = {}  # field → it answers about a label; None = only blanks so far
        for name in columns:
            self._meet(name)

    @property
    def fields(self) -> list[str]:
        return list(self.answers)

    @property
    def all_list_text(self) -> bool:
        return bool(self.list_texts) and self.list_texts == self.filled

    def _is_ignored(self, name: str) -> bool:
        return name.lower() in self._ignored or plain_name(name) in self._ignored

    def _meet(self, name: str) -> None:
        if not self._is_ignored(name):
            self.answers.setdefault(name, None if plain_name(name) not in COUNTERS else False)

    def texts(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """The label cells that are texts; everything else about the rows is noted on the way."""
        for row in rows:
            self.count += 1
            for name, value in row.items():
                if name not in self.answers:
                    self._meet(name)
                kind = plain_name(name)
                if kind in LABEL_COLUMNS:
                    first = value[0] if isinstance(value, list) and value else value
                    self.numbers |= isinstance(first, int)
                    if isinstance(value, str) and value.strip():
                        self.filled += 1
                        self.list_texts += is_list_text(value)
                        yield value
                elif self.answers.get(name, False) is not False and not is_blank(value):
                    self.answers[name] = wide_value(value) is not None

    def first(self, names: Iterable[str]) -> str | None:
        """The field of the first of these names that is there: 'file_name' before 'image'."""
        fields = {plain_name(name): name for name in reversed(self.fields)}
        return next((fields[name] for name in names if name in fields), None)

    def wide(self, taken: Iterable[str | None]) -> tuple[str, ...]:
        known = {name for names in KINDS.values() for name in names} | {name for name in taken if name}
        return tuple(name for name, answers in self.answers.items() if answers and plain_name(name) not in known)

    def notes(self, taken: Iterable[str | None], wide: tuple[str, ...], delimiter: str | None) -> list[str]:
        used = {*taken, *wide}
        unused = [name for name in self.fields if name not in used]
        notes = []
        if self.filled and not self.all_list_text:
            notes.append(
                f"labels separated by {delimiter!r}" if delimiter else "one label per image: no delimiter found"
            )
        if wide:
            notes.append(f"wide label fields: {len(wide)} labels")
        if self.numbers:
            notes.append("labels are numbers without names; they are called '0', '1', …")
        if unused:
            more = f" and {len(unused) - 10} more" if len(unused) > 10 else ""
            notes.append(f"fields that are not used: {', '.join(unused[:10])}{more}")
        return notes


def _text(row: Mapping[str, Any], column: str | None) -> str | None:
    value = None if column is None else row.get(column)
    return None if is_blank(value) else str(value).strip() or None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"

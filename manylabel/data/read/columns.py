"""Which field of a row holds what. Every table comes here as rows by field name (CSV, JSON, Parquet, Arrow, samples of
tars), so the same rows mean the same in all of them:

one field per label   1, 1.0, true, yes, x: present; 0, 0.0, false, no: absent; blank, null, ?: unknown (or data.blank)
                      -1: unknown, but absent where no answer of the table is 0 or blank
one field of labels   a list, such a list as text, or names with a delimiter
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.builder import DELIMITERS
from manylabel.data.read.row_value import is_list_text, listed_names, names_in_text, row_things
from manylabel.data.record import Record
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

FILE_COLUMNS = ("file_name", "filename", "file", "image", "image_path", "path", "image_name")
OTHER_FILE_COLUMNS = (  # taken for the image files where none of the above is there, the first before the others
    *("filepath", "file_path", "img_path", "image_file", "imagepath", "img", "fname", "photo", "picture"),
    *("image_id", "imageid", "img_id", "image_index", "id", "image_url", "url", "name"),
)
LABEL_COLUMNS = ("labels", "label", "tags", "classes", "class", "category", "categories", "finding_labels")
UNKNOWN_COLUMNS = ("unknown_labels",)
OBJECT_COLUMNS = ("objects",)
KINDS = {
    "file": FILE_COLUMNS + OTHER_FILE_COLUMNS,
    "labels": LABEL_COLUMNS,
    "split": ("split", "subset"),
    "group": ("group", "group_id", "patient", "patient_id"),
    "unknown": UNKNOWN_COLUMNS,
    "absent": ("absent_labels",),  # where this one is, labels that a row does not name are unknown
    "objects": OBJECT_COLUMNS,
}
KIND = {name: kind for kind, names in KINDS.items() for name in names}
SHEET_COLUMNS = FILE_COLUMNS + KINDS["split"] + KINDS["group"]  # what is no label in a sheet with one column for each
NO_LABELS = FILE_COLUMNS + KINDS["split"] + LABEL_COLUMNS  # whose cells need not be looked at for answers
PANDAS = "unnamed:_0"  # its number of the row, in a first column without a name
COUNTERS = ("id", "index", "__index_level_0__", PANDAS, "")  # numbers of rows: 0 and 1 in them are no answers
ANSWERS = dict.fromkeys(("1", "1.0", "true", "yes", "x"), PRESENT) | dict.fromkeys(("0", "0.0", "false", "no"), ABSENT)
UNSURE = ("-1", "-1.0")
ANSWERS |= dict.fromkeys(("?", *UNSURE), UNKNOWN)
MOST_DISTINCT = 100_000  # different cells kept to judge what separates labels, and lists of names kept to be quick
MOST_ANSWERS = 20  # different answers that are remembered
NAMED = 12  # fields in a message


def plain_name(name: str) -> str:
    return name.lower().replace(" ", "_")


def is_blank(value: Any) -> bool:
    return value is None or value == "" or value != value or (isinstance(value, str) and not value.strip())


def answer(value: Any) -> int | None:
    """PRESENT, ABSENT or UNKNOWN; None where this is no answer about a label."""
    if is_blank(value):
        return UNKNOWN
    return ANSWERS.get(str(value).strip().lower()) if isinstance(value, (bool, int, float, str)) else None


def split_names(cell: str, delimiter: str | None) -> tuple[str, ...]:
    parts = cell.split(delimiter) if delimiter else [cell]
    return tuple(name for part in parts if (name := part.strip()))


class LabelCells:
    """What the texts of a field of labels look like, in memory that does not grow with them."""

    def __init__(self, cells: Iterable[str] = ()) -> None:
        self._times: dict[str, int] = {}
        self._rare: Counter[str] = (
            Counter()
        )  # cells beyond those that are kept: filled ones, lists, with each delimiter
        for cell in cells:
            self.see(cell)

    def see(self, cell: str) -> None:
        times = self._times.get(cell)
        if times is not None or len(self._times) < MOST_DISTINCT:
            self._times[cell] = (times or 0) + 1
        elif cell.strip():
            signs = [sign for sign in DELIMITERS if sign in cell.strip()]
            self._rare.update(["filled", *signs, *(["list"] if is_list_text(cell) else [])])

    @cached_property
    def _cells(self) -> dict[str, int]:
        """Text → how often it is there; once all were seen."""
        found: Counter[str] = Counter()
        for cell, times in self._times.items():
            found[cell.strip()] += times
        del found[""]
        return dict(found)

    @property
    def filled(self) -> int:
        return sum(self._cells.values()) + self._rare["filled"]

    @property
    def are_lists(self) -> bool:
        """Whether there are any, and all are lists written out."""
        lists = sum(times for cell, times in self._cells.items() if is_list_text(cell)) + self._rare["list"]
        return 0 < lists == self.filled

    def delimiter(self) -> str | None:
        """The one that most cells contain; a space only where it clearly separates words of a small vocabulary."""
        counts = {s: self._rare[s] + sum(n for cell, n in self._cells.items() if s in cell) for s in DELIMITERS}
        best = max(DELIMITERS, key=lambda sign: counts[sign])
        if counts[best]:
            return best
        if len({len(cell.split()) for cell in self._cells}) < 2:
            return None  # names of two words each, perhaps
        return " " if 3 * len({word for cell in self._cells for word in cell.split()}) < 2 * len(self._cells) else None

    def shares_words(self) -> bool:
        """Whether cells with spaces have words in common, so that a space may be a delimiter after all."""
        spaced = [cell.split() for cell in self._cells if " " in cell]
        return len({word for words in spaced for word in words}) < sum(map(len, spaced))


@dataclass
class Columns:
    """Decided once, from the names of the fields and from all rows."""

    file: str
    labels: str | None = None
    split: str | None = None
    group: str | None = None
    unknown: str | None = None
    absent: str | None = None
    objects: str | None = None
    wide: tuple[str, ...] = ()  # fields that are labels themselves
    delimiter: str | None = None
    list_text: bool = False  # the texts are lists written out: "['a', 'b']"
    unsure: int = UNKNOWN  # what -1 means
    blank: int = UNKNOWN  # what a blank means
    word: str = "field"  # what messages call a column
    notes: tuple[str, ...] = ()
    _states: dict[Any, int] = field(default_factory=dict, repr=False)  # value of a wide field → what it means
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)  # text → names

    @property
    def rest(self) -> int:
        """What a label is that a row does not mention."""
        return UNKNOWN if self.wide or self.absent is not None else ABSENT

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        config: DataConfig,
        path: Path,
        names: Iterable[str] = (),
        *,
        sheet: bool = False,
    ) -> Columns:
        """From rows, which are gone through once and not kept. In a `sheet` of labels every column must be understood:
        what else is there may be a label with a slip in its name or its cells."""
        return _Survey(config, path, names, sheet).columns(rows)

    def record(self, row: Mapping[str, Any], where: str) -> Record:
        """One row; `where` names it in messages."""
        name = row.get(self.file)
        if not isinstance(name, str) or not name.strip():
            said = "is missing or blank" if name in (None, "") else f"is {_short(name)}, not a file name"
            raise DataError(f"{where}: {self.word} {self.file!r} {said}; fill it in or delete the row")
        absent: tuple[str, ...] = ()
        if self.wide:
            present, absent = self._wide_labels(row, where)
        else:
            present = self._listed(row, self.labels, where) if self.labels else ()
            absent = self._listed(row, self.absent, where) if self.absent else ()
        unknown = self._listed(row, self.unknown, where) if self.unknown else ()
        things = row_things(row.get(self.objects), f"{where}, field {self.objects!r}") if self.objects else ()
        if things:
            said_already = {*present, *absent, *unknown}
            present += tuple(dict.fromkeys(thing.label for thing in things if thing.label not in said_already))
        return Record(
            name.strip(),
            where,
            present,
            absent,
            unknown,
            _text(row.get(self.split)) if self.split else None,
            _text(row.get(self.group)) if self.group else None,
            things,
            None,
            self.labels is not None and row.get(self.labels) is None and self._is_unlabelled(row),
        )

    def _is_unlabelled(self, row: Mapping[str, Any]) -> bool:
        """A row without the fields that speak of labels, or with null in them: nobody looked at this image."""
        return all(row.get(name) is None for name in (self.labels, self.absent, self.unknown) if name is not None)

    def _listed(self, row: Mapping[str, Any], column: str, where: str) -> tuple[str, ...]:
        value = row.get(column)
        if not isinstance(value, str):
            return () if value is None else listed_names(value, f"{where}, {self.word} {column!r}")
        names = self._names.get(value)
        if names is None:
            if self.list_text:
                names = names_in_text(value, f"{where}, {self.word} {column!r}")
            else:
                names = split_names(value, self.delimiter)
            if len(self._names) < MOST_DISTINCT:
                self._names[value] = names
        return names

    def _wide_labels(self, row: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(present, absent); the rest is unknown as it is."""
        present, absent = [], []
        for name in self.wide:
            value = row.get(name)
            try:
                state = self._states.get(value)
            except TypeError:  # a list or an object
                state = None
            if state is None:
                state = self._state(value, f"{where}, {self.word} {name!r}", name)
            if state == PRESENT:
                present.append(name)
            elif state == ABSENT:
                absent.append(name)
        return tuple(present), tuple(absent)

    def _state(self, value: Any, where: str, name: str) -> int:
        state = answer(value)
        if state is None:
            raise DataError(
                f"{where}: {_short(value)} is not 1, true, yes, x (present), 0, false, no (absent) or blank (unknown); if "
                f"these are the labels, call the {self.word} 'labels'; if it is no label, "
                f"--set 'data.ignore_columns=[\"{name}\"]'"
            )
        state = self.blank if is_blank(value) else self.unsure if str(value).strip() in UNSURE else state
        if len(self._states) < MOST_ANSWERS and value == value:
            self._states[value] = state
        return state


class _Survey:
    """What the rows look like."""

    def __init__(self, config: DataConfig, path: Path, names: Iterable[str], sheet: bool) -> None:
        self.config, self.path, self.sheet = config, path, sheet
        self.word = "column" if sheet else "field"
        self.ignored = {plain_name(name) for name in config.ignore_columns}
        self.rows = 0
        self.numbers = False  # a label is a number
        self.cells, self.others = LabelCells(), LabelCells()  # of the labels, and of those that are absent or unknown
        self.kinds: dict[str, str | None] = {}  # field → its kind, if it has one; in the order met
        self.seen: dict[str, set[Any] | None] = {}  # field that may be a label → its answers; None = it is none
        self.times: Counter[str] = Counter()  # rows that have such a field
        for name in names:
            self._meet(name)

    def columns(self, rows: Iterable[Mapping[str, Any]]) -> Columns:
        for row in rows:
            self.rows += 1
            for name, value in row.items():
                if name not in self.kinds:
                    self._meet(name)
                kind = self.kinds[name]
                if kind in ("labels", "absent", "unknown"):
                    self._see_labels(kind, value)
                elif (seen := self.seen.get(name)) is not None:
                    self.times[name] += 1
                    self._see_answer(name, seen, value)
        if not self.rows:
            raise DataError(f"{self.path} has no rows; add one row per image")
        chosen = self._chosen()
        wide = () if chosen["labels"] or chosen["objects"] else self._wide(chosen)
        self._refuse(chosen, wide)
        lists = self.config.delimiter is None and self.cells.are_lists
        delimiter = None if lists else self.config.delimiter or self.cells.delimiter() or self.others.delimiter()
        answers = {answer(value) for name in wide for value in self.seen[name] or ()}
        said = {str(value).strip() for name in wide for value in self.seen[name] or () if not is_blank(value)}
        blanks = any(None in (self.seen[name] or ()) or self.times[name] < self.rows for name in wide)
        only = bool(said & set(UNSURE)) and ABSENT not in answers and not blanks
        columns = Columns(
            **chosen,
            wide=wide,
            delimiter=delimiter,
            list_text=lists,
            unsure=ABSENT if only else UNKNOWN,
            blank=ABSENT if self.config.blank == "absent" else UNKNOWN,
            word=self.word,
        )
        columns.notes = tuple(self._notes(columns))
        return columns

    def _meet(self, name: str) -> None:
        plain = plain_name(name)
        if plain in self.ignored or (self.sheet and plain == PANDAS):
            self.kinds[name] = "ignored"
            return
        self.kinds[name] = KIND.get(plain)
        if plain not in NO_LABELS and (self.sheet or plain not in COUNTERS):
            self.seen[name] = set()

    def _see_labels(self, kind: str | None, value: Any) -> None:
        if isinstance(value, str):
            (self.cells if kind == "labels" else self.others).see(value)
        elif kind == "labels":
            first = value[0] if isinstance(value, list) and value else value
            self.numbers |= isinstance(first, int)

    def _see_answer(self, name: str, seen: set[Any], value: Any) -> None:
        try:
            if value in seen:
                return
        except TypeError:  # a list or an object
            self.seen[name] = None
            return
        if not self.sheet and answer(value) is None:
            self.seen[name] = None
        elif len(seen) < MOST_ANSWERS:
            seen.add(None if is_blank(value) else value)

    def _chosen(self) -> dict[str, Any]:
        """kind → field, of several the one whose name comes first: 'file_name' before 'image'."""
        fields = {
            plain_name(name): name for name, kind in reversed(self.kinds.items()) if kind not in (None, "ignored")
        }
        chosen = {kind: next((fields[n] for n in names if n in fields), None) for kind, names in KINDS.items()}
        return chosen | ({"objects": None} if self.sheet else {})  # a cell cannot hold them

    def _wide(self, chosen: Mapping[str, str | None]) -> tuple[str, ...]:
        taken = {name for name in chosen.values() if name}
        return tuple(
            name
            for name, seen in self.seen.items()
            if name not in taken
            and (self.sheet or (seen is not None and seen - {None, "?"}))
            and (plain_name(name) not in SHEET_COLUMNS if self.sheet else self.kinds[name] is None)
        )

    def _refuse(self, chosen: Mapping[str, str | None], wide: tuple[str, ...]) -> None:
        """What cannot be a table of labels."""
        path, fields = self.path, [name for name, kind in self.kinds.items() if kind != "ignored"]
        has = ", ".join(fields[:NAMED]) + (f" … and {len(fields) - NAMED} more" if len(fields) > NAMED else "")
        if chosen["file"] is None:
            raise DataError(
                f"{path} has no {self.word} with the image files (it has: {has or 'nothing'}); call it 'file_name'"
            )
        if not (chosen["labels"] or chosen["objects"] or wide):
            raise DataError(
                f"{path} has no {self.word} with labels (it has: {has}); add 'labels' with names, or one {self.word} per "
                "label with 1 or 0"
            )
        if not self.sheet:
            return
        known = SHEET_COLUMNS + LABEL_COLUMNS + KINDS["unknown"] + KINDS["absent"]
        odd = [name for name in fields if name not in {*chosen.values(), *wide} and plain_name(name) not in known]
        if odd:
            ignored = ", ".join([*self.config.ignore_columns, *odd])
            raise DataError(
                f"{path}, row 1: column {' and '.join(map(repr, odd))} is not one we know (file_name, labels, split, group, "
                f"unknown_labels, absent_labels); delete it, or leave it out with --set 'data.ignore_columns=[{ignored}]'"
            )
        if chosen["labels"] and not self.cells.filled:
            raise DataError(f"{path}: no row has a label in column {chosen['labels']!r}; there is nothing to learn")
        groups = self.seen.get(chosen["group"] or "") if wide else None
        if groups and len(groups) > 1 and all(answer(value) is not None for value in groups):
            raise DataError(
                f"{path}, row 1: column {chosen['group']!r} would be the group of the images, but its cells look like those "
                "of a label; rename the column"
            )

    def _notes(self, columns: Columns) -> Iterator[str]:
        if self.sheet and plain_name(columns.file) not in FILE_COLUMNS:
            yield f"the image files are in column {columns.file!r}"
        if columns.list_text and self.sheet:
            yield "labels are lists written as text"
        elif self.cells.filled and not columns.list_text:
            spaced = self.sheet and self.cells.shares_words()
            hint = "; if a space separates labels: --set 'data.delimiter= '" if spaced else ""
            if columns.delimiter:
                yield f"labels separated by {columns.delimiter!r}"
            else:
                yield f"one label per image: no delimiter found{hint}"
        if columns.wide:
            yield f"wide label {self.word}s: {len(columns.wide)} labels, blank cells are {self.config.blank}"
            if columns.unsure == ABSENT:
                yield "-1 is taken for absent, because no cell is 0 or blank"
            if columns.group and self.sheet:
                yield f"column {columns.group!r} is the group of the images"
        if self.numbers:
            yield "labels are numbers without names; they are called '0', '1', …"
        used = {
            columns.file,
            columns.labels,
            columns.split,
            columns.group,
            columns.unknown,
            columns.absent,
            columns.objects,
        }
        unused = [name for name, kind in self.kinds.items() if name not in used | {*columns.wide} and kind != "ignored"]
        if unused and not self.sheet:
            more = f" and {len(unused) - 10} more" if len(unused) > 10 else ""
            yield f"fields that are not used: {', '.join(unused[:10])}{more}"


def _text(value: Any) -> str | None:
    return None if value is None or value != value else str(value).strip() or None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"

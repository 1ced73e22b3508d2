"""The labels of a row: separated by a delimiter in one cell, or one column each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from manylabel.config import DataConfig
from manylabel.data.read.row_value import is_list_text, names_in_text
from manylabel.data.read.sheet import (
    ABSENT_COLUMNS,
    COLUMN_KINDS,
    COUNTERS,
    FILE_COLUMNS,
    GROUP_COLUMNS,
    SPLIT_COLUMNS,
    UNKNOWN_COLUMNS,
    Sheet,
    plain_name,
)
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

DELIMITERS = ("|", ";", ",", "\t")
WIDE_CELLS = dict.fromkeys(("1", "1.0", "true", "yes", "x"), PRESENT)
WIDE_CELLS |= dict.fromkeys(("0", "0.0", "false", "no"), ABSENT)
WIDE_CELLS |= dict.fromkeys(("", "-1", "?"), UNKNOWN)
MOST_DISTINCT = 100_000  # different cells kept to judge whether a space is a delimiter


@dataclass
class Survey:
    """What the cells of a label column look like."""

    rows: int
    filled: int
    counts: dict[str, int]  # cells that contain each delimiter
    lists: int  # cells like "['a', 'b']"
    distinct: set[str]

    @classmethod
    def of(cls, sheet: Sheet, column: int) -> Survey:
        others = [i for kind in (UNKNOWN_COLUMNS, ABSENT_COLUMNS) if (i := sheet.column(kind)) is not None]
        found = cls.of_cells(row[column] for _, row in sheet.rows())
        if others and found.delimiter() is None:  # one label each, perhaps; but several that are absent
            found.counts = cls.of_cells(row[i] for _, row in sheet.rows() for i in others).counts
        return found

    @classmethod
    def of_cells(cls, cells: Iterable[str]) -> Survey:
        found = cls(0, 0, dict.fromkeys(DELIMITERS, 0), 0, set())
        for cell in cells:
            found.rows += 1
            cell = cell.strip()
            if cell:
                found.filled += 1
                found.lists += is_list_text(cell)
                for delimiter in DELIMITERS:
                    found.counts[delimiter] += delimiter in cell
                if len(found.distinct) < MOST_DISTINCT:
                    found.distinct.add(cell)
        return found

    def delimiter(self) -> str | None:
        """The one that most cells contain; a space only where it clearly separates words of a small vocabulary."""
        best = max(DELIMITERS, key=lambda delimiter: self.counts[delimiter])
        if self.counts[best]:
            return best
        lengths = {len(cell.split()) for cell in self.distinct}
        if len(lengths) < 2:
            return None  # names of two words each, perhaps
        words = {word for cell in self.distinct for word in cell.split()}
        return " " if 3 * len(words) < 2 * len(self.distinct) else None

    def shares_words(self) -> bool:
        """Whether cells with spaces have words in common, so that a space may be a delimiter after all."""
        spaced = [cell.split() for cell in self.distinct if " " in cell]
        return len({word for words in spaced for word in words}) < sum(map(len, spaced))


def detect_delimiter(cells: Iterable[str]) -> str | None:
    """What separates the labels in these cells, if anything does."""
    return Survey.of_cells(cells).delimiter()


class Delimited:
    """Labels separated by a delimiter in one cell, and in another those that nobody checked."""

    def __init__(self, sheet: Sheet, column: int, config: DataConfig, survey: Survey, notes: list[str]) -> None:
        _refuse_odd_columns(sheet, config)
        self.sheet = sheet
        self.column = column
        self.unknown_column = sheet.column(UNKNOWN_COLUMNS)
        self.absent_column = sheet.column(ABSENT_COLUMNS)
        if survey.rows and not survey.filled:
            raise DataError(
                f"{sheet.path}: no row has a label in column {sheet.header[column]!r}; there is nothing to learn"
            )
        self.list_text = config.delimiter is None and survey.lists == survey.filled
        self.delimiter = None if self.list_text else config.delimiter or survey.delimiter()
        if self.list_text:
            notes.append("labels are lists written as text")
        elif self.delimiter:
            notes.append(f"labels separated by {self.delimiter!r}")
        else:
            hint = "; if a space separates labels: --set 'data.delimiter= '" if survey.shares_words() else ""
            notes.append(f"one label per image: no delimiter found{hint}")

    def read(self, line: int, row: list[str]) -> tuple[tuple[str, ...], ...]:
        cell = row[self.column]
        absent, unknown = (row[i] if i is not None else "" for i in (self.absent_column, self.unknown_column))
        if self.list_text:
            return tuple(names_in_text(names, self.sheet.at(line)) for names in (cell, absent, unknown))
        return tuple(split_names(names, self.delimiter) for names in (cell, absent, unknown))


def _refuse_odd_columns(sheet: Sheet, config: DataConfig) -> None:
    understood = {name for kind in COLUMN_KINDS for name in kind} | _ignored(config)
    odd = [name for i, name in enumerate(sheet.header) if plain_name(name) not in understood and i != sheet.files()]
    if odd:
        ignored = ", ".join([*config.ignore_columns, *odd])
        raise DataError(
            f"{sheet.path}, row 1: column {' and '.join(map(repr, odd))} is not one we know (file_name, labels, split, "
            f"group, unknown_labels, absent_labels); delete it, or leave it out with --set 'data.ignore_columns=[{ignored}]'"
        )


def _ignored(config: DataConfig) -> set[str]:
    return {plain_name(name) for name in config.ignore_columns} | set(COUNTERS)


def split_names(cell: str, delimiter: str | None) -> tuple[str, ...]:
    parts = cell.split(delimiter) if delimiter else [cell]
    return tuple(name for part in parts if (name := part.strip()))


# --- one column per label ---------------------------------------------------------------------------------------


class Wide:
    """Every column that is nothing else is a label."""

    def __init__(self, sheet: Sheet, config: DataConfig, notes: list[str]) -> None:
        others = {*FILE_COLUMNS, *SPLIT_COLUMNS, *GROUP_COLUMNS, *_ignored(config)}
        self.sheet = sheet
        names = enumerate(map(plain_name, sheet.header))
        self.columns = [i for i, name in names if name not in others and i != sheet.files()]
        if not self.columns:
            raise DataError(f"{sheet.path}, row 1: no label column; add 'labels', or one 0/1 column per label")
        self.labels = tuple(sheet.header[i] for i in self.columns)
        self.meaning = WIDE_CELLS | ({"": ABSENT} if config.blank == "absent" else {})
        self.rows = 0
        seen: set[str] = set()
        group = sheet.column(GROUP_COLUMNS)
        groups: set[str] = set()
        for _, row in sheet.rows():
            self.rows += 1
            if len(seen) < 10:  # more kinds of cells than answers: reading will say which is wrong
                seen.update(row[i].strip().lower() for i in self.columns)
            if group is not None and len(groups) < 10:
                groups.add(row[group].strip().lower())
        notes.append(f"wide label columns: {len(self.labels)} labels, blank cells are {config.blank}")
        if "-1" in seen and not any(self.meaning.get(cell) == ABSENT or cell == "" for cell in seen):
            self.meaning["-1"] = ABSENT
            notes.append("-1 is taken for absent, because no cell is 0 or blank")
        if group is not None and groups <= WIDE_CELLS.keys() and len(groups) > 1:
            raise DataError(
                f"{sheet.path}, row 1: column {sheet.header[group]!r} would be the group of the images, but its cells look "
                "like those of a label; rename the column"
            )
        if group is not None:
            notes.append(f"column {sheet.header[group]!r} is the group of the images")

    def read(self, line: int, row: list[str]) -> tuple[tuple[str, ...], ...]:
        present, absent = [], []
        for name, column in zip(self.labels, self.columns, strict=True):
            value = self.meaning.get(row[column].strip().lower())
            if value is None:
                raise DataError(
                    f"{self.sheet.at(line)}, column {name!r}: {row[column]!r} is not 1, true, yes, x "
                    f"(present), 0, false, no (absent) or blank (unknown); if these are the labels, call the column "
                    f"'labels'; if it is no label, --set 'data.ignore_columns=[\"{name}\"]'"
                )
            if value == PRESENT:
                present.append(name)
            elif value == ABSENT:
                absent.append(name)
        return tuple(present), tuple(absent), ()

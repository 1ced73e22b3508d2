"""CSV and TSV label files: one row per image, labels delimited in one cell or as wide 0/1/blank columns.

The file is read twice and never held in memory: first to see which delimiter it uses, then row by row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.places import image_root
from manylabel.data.read.text_file import text_lines
from manylabel.data.record import Reading, Record
from manylabel.data.source import FileSource
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN
from manylabel.spreadsheet import plain_cell

FILE_COLUMNS = ("file_name", "filename", "file", "image", "image_path", "path", "image_name")
LABEL_COLUMNS = ("labels", "label", "tags", "classes")
SPLIT_COLUMNS = ("split", "subset")
GROUP_COLUMNS = ("group", "group_id")
UNKNOWN_COLUMNS = ("unknown_labels",)
ABSENT_COLUMNS = ("absent_labels",)  # where this one is, labels that a row does not name are unknown
COLUMN_KINDS = (FILE_COLUMNS, LABEL_COLUMNS, SPLIT_COLUMNS, GROUP_COLUMNS, UNKNOWN_COLUMNS, ABSENT_COLUMNS)
DELIMITERS = ("|", ";", ",", "\t")
WIDE_CELLS = dict.fromkeys(("1", "1.0", "true", "yes", "x"), PRESENT)
WIDE_CELLS |= dict.fromkeys(("0", "0.0", "false", "no"), ABSENT)
WIDE_CELLS |= dict.fromkeys(("", "-1", "?"), UNKNOWN)
SAMPLE = 50  # rows looked at to find the folder of the images
MOST_DISTINCT = 100_000  # different cells kept to judge whether a space is a delimiter


@dataclass(frozen=True)
class Sheet:
    """A file of rows under a header."""

    path: Path
    separator: str
    header: tuple[str, ...]

    def column(self, names: Iterable[str]) -> int | None:
        found = [i for i, cell in enumerate(self.header) if plain_name(cell) in names]
        return found[0] if found else None

    def at(self, line: int) -> str:
        return f"{self.path.name}, row {line}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line in the file, cells) of every row below the header."""
        reader = csv.reader(text_lines(self.path), delimiter=self.separator, strict=True)
        header_passed = False
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if not header_passed:
                    header_passed = True
                elif len(cells) != len(self.header):
                    raise DataError(
                        f"{self.path}, row {reader.line_num}: {len(cells)} cells where the header has "
                        f"{len(self.header)}; put cells that contain the separator in double quotes"
                    )
                elif any("\n" in cell or "\r" in cell for cell in cells):
                    raise DataError(
                        f"{self.path}, row {reader.line_num}: a cell runs over several lines; is a quote not closed?"
                    )
                else:
                    yield reader.line_num, [plain_cell(cell) for cell in cells] if "'" in "".join(cells) else cells
        except csv.Error as error:
            raise DataError(f"{self.path}, row {reader.line_num}: {error}; is a quote not closed?") from error


def plain_name(name: str) -> str:
    return name.lower().replace(" ", "_")


def open_sheet(path: Path) -> Sheet:
    """The sheet with its header checked."""
    first = next((line for line in text_lines(path) if line.strip()), "")
    if not first:
        raise DataError(f"{path} is empty; it needs a header row such as 'file_name,labels' and one row per image")
    separator = max((",", "\t", ";"), key=first.count)
    try:
        cells = next(csv.reader([first], delimiter=separator))
    except csv.Error as error:
        raise DataError(f"{path}, row 1: {error}; is a quote not closed?") from error
    return Sheet(path, separator, _checked_header(path, cells))


def _checked_header(path: Path, cells: list[str]) -> tuple[str, ...]:
    header = tuple(cell.strip() for cell in cells)
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{path}, row 1: {header.count(name)} columns are called {name!r}; keep one of them")
    for kind in COLUMN_KINDS:
        same = [cell for cell in header if plain_name(cell) in kind]
        if len(same) > 1:
            raise DataError(f"{path}, row 1: columns {' and '.join(map(repr, same))} mean the same; keep one of them")
    if "" in header:
        raise DataError(f"{path}, row 1: column {header.index('') + 1} has no name")
    return header


def read_csv(path: Path, config: DataConfig) -> Reading:
    """A CSV or TSV file whose images lie beside it, or in one folder beside it."""
    sheet = open_sheet(path)
    file_column = sheet.column(FILE_COLUMNS)
    if file_column is None:
        raise DataError(
            f"{path} has no column with the image files (row 1 has: {', '.join(sheet.header)}); call it 'file_name'"
        )
    notes: list[str] = []
    label_column = sheet.column(LABEL_COLUMNS)
    if label_column is not None:
        survey = _Survey.of(sheet, label_column)
        cells: _Delimited | _Wide = _Delimited(sheet, label_column, config, survey, notes)
        labels = None
        rest = UNKNOWN if sheet.column(ABSENT_COLUMNS) is not None else ABSENT
        total = survey.rows
    else:
        cells = _Wide(sheet, config)
        labels = cells.labels
        rest = UNKNOWN
        total = sum(1 for _ in sheet.rows())
        notes.append(f"wide label columns: {len(labels)} labels, blank cells are {config.blank}")
    if total == 0:
        raise DataError(f"{path} has a header but no rows; add one row per image")
    root = image_root(path.parent, [row[file_column].strip() for _, row in islice(sheet.rows(), SAMPLE)], config, notes)
    split, group = sheet.column(SPLIT_COLUMNS), sheet.column(GROUP_COLUMNS)

    def records() -> Iterator[Record]:
        for line, row in sheet.rows():
            present, absent, unknown = cells.read(line, row)
            yield Record(
                key=row[file_column].strip(),
                where=sheet.at(line),
                present=present,
                absent=absent,
                unknown=unknown,
                split=None if split is None else row[split],
                group=None if group is None else row[group].strip() or None,
            )

    return Reading("csv", path, FileSource(root), records, labels=labels, rest=rest, total=total, notes=notes)


# --- labels in one cell -----------------------------------------------------------------------------------------


@dataclass
class _Survey:
    """What the cells of a label column look like."""

    rows: int
    filled: int
    counts: dict[str, int]  # cells that contain each delimiter
    distinct: set[str]

    @classmethod
    def of(cls, sheet: Sheet, column: int) -> _Survey:
        others = [i for kind in (UNKNOWN_COLUMNS, ABSENT_COLUMNS) if (i := sheet.column(kind)) is not None]
        found = cls.of_cells(row[column] for _, row in sheet.rows())
        if others and found.delimiter() is None:  # one label each, perhaps; but several that are absent
            found.counts = cls.of_cells(row[i] for _, row in sheet.rows() for i in others).counts
        return found

    @classmethod
    def of_cells(cls, cells: Iterable[str]) -> _Survey:
        found = cls(0, 0, dict.fromkeys(DELIMITERS, 0), set())
        for cell in cells:
            found.rows += 1
            cell = cell.strip()
            if cell:
                found.filled += 1
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
        words = {word for cell in self.distinct for word in cell.split()}
        spaced = any(" " in cell for cell in self.distinct)
        return " " if spaced and 3 * len(words) < 2 * len(self.distinct) else None


def detect_delimiter(cells: Iterable[str]) -> str | None:
    """What separates the labels in these cells, if anything does."""
    return _Survey.of_cells(cells).delimiter()


class _Delimited:
    """Labels separated by a delimiter in one cell, and in another those that nobody checked."""

    def __init__(self, sheet: Sheet, column: int, config: DataConfig, survey: _Survey, notes: list[str]) -> None:
        _refuse_odd_columns(sheet, config)
        self.sheet = sheet
        self.column = column
        self.unknown_column = sheet.column(UNKNOWN_COLUMNS)
        self.absent_column = sheet.column(ABSENT_COLUMNS)
        if survey.rows and not survey.filled:
            raise DataError(
                f"{sheet.path}: no row has a label in column {sheet.header[column]!r}; there is nothing to learn"
            )
        self.delimiter = config.delimiter or survey.delimiter()
        self.vocabulary: set[str] = set()  # where another delimiter occurs: the labels that stand beside others
        if config.delimiter is None and self.delimiter and sum(map(bool, survey.counts.values())) > 1:
            for _, row in sheet.rows():
                names = split_names(row[column], self.delimiter)
                if len(names) > 1:
                    self.vocabulary.update(names)
        found = (
            f"labels separated by {self.delimiter!r}" if self.delimiter else "one label per image: no delimiter found"
        )
        notes.append(found)

    def read(self, line: int, row: list[str]) -> tuple[tuple[str, ...], ...]:
        cell = row[self.column]
        if self.vocabulary:
            self._refuse_other_delimiter(line, cell)
        absent, unknown = (row[i] if i is not None else "" for i in (self.absent_column, self.unknown_column))
        return tuple(split_names(names, self.delimiter) for names in (cell, absent, unknown))

    def _refuse_other_delimiter(self, line: int, cell: str) -> None:
        """A cell with only another delimiter whose pieces are labels elsewhere was written by another hand."""
        for other in DELIMITERS:
            if other != self.delimiter and other in cell and str(self.delimiter) not in cell:
                pieces = split_names(cell, other)
                if len(pieces) > 1 and all(piece in self.vocabulary for piece in pieces):
                    raise DataError(
                        f"{self.sheet.at(line)}: {cell!r} separates labels by {other!r} where other rows use "
                        f"{self.delimiter!r}; use one delimiter, or name it with --set data.delimiter=…"
                    )


def _refuse_odd_columns(sheet: Sheet, config: DataConfig) -> None:
    understood = {name for kind in COLUMN_KINDS for name in kind} | set(map(str.lower, config.ignore_columns))
    odd = [name for name in sheet.header if plain_name(name) not in understood]
    if odd:
        ignored = ", ".join([*config.ignore_columns, *odd])
        raise DataError(
            f"{sheet.path}, row 1: column {' and '.join(map(repr, odd))} is not one we know (file_name, labels, split, "
            f"group, unknown_labels, absent_labels); delete it, or leave it out with --set 'data.ignore_columns=[{ignored}]'"
        )


def split_names(cell: str, delimiter: str | None) -> tuple[str, ...]:
    parts = cell.split(delimiter) if delimiter else [cell]
    return tuple(name for part in parts if (name := part.strip()))


# --- one column per label ---------------------------------------------------------------------------------------


class _Wide:
    """Every column that is nothing else is a label."""

    def __init__(self, sheet: Sheet, config: DataConfig) -> None:
        others = {*FILE_COLUMNS, *SPLIT_COLUMNS, *GROUP_COLUMNS, *map(str.lower, config.ignore_columns)}
        self.sheet = sheet
        self.columns = [i for i, name in enumerate(sheet.header) if plain_name(name) not in others]
        if not self.columns:
            raise DataError(f"{sheet.path}, row 1: no label column; add 'labels', or one 0/1 column per label")
        self.labels = tuple(sheet.header[i] for i in self.columns)
        self.meaning = WIDE_CELLS | ({"": ABSENT} if config.blank == "absent" else {})

    def read(self, line: int, row: list[str]) -> tuple[tuple[str, ...], ...]:
        present, absent = [], []
        for name, column in zip(self.labels, self.columns, strict=True):
            value = self.meaning.get(row[column].strip().lower())
            if value is None:
                raise DataError(
                    f"{self.sheet.at(line)}, column {name!r}: {row[column]!r} is not 1, true, yes, x "
                    f"(present), 0, false, no (absent) or blank (unknown); "
                    f"if it is no label, --set 'data.ignore_columns=[{name}]'"
                )
            if value == PRESENT:
                present.append(name)
            elif value == ABSENT:
                absent.append(name)
        return tuple(present), tuple(absent), ()


def _sniff(path: Path) -> str:
    return "" if path.is_dir() or path.suffix.lower() not in (".csv", ".tsv") else f"{path.suffix.lower()[1:]} file"


FORMAT = Format("csv", "CSV or TSV", _sniff, read_csv)

"""CSV and TSV label files: one row per image, labels delimited in one cell or as wide 0/1/blank columns."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS, Table
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, label_key
from manylabel.suggest import closest

FILE_COLUMNS = ("file_name", "filename", "file", "image", "image_path", "path", "image_name")
LABEL_COLUMNS = ("labels", "label", "tags", "classes")
SPLIT_COLUMNS = ("split", "subset")
UNKNOWN_COLUMNS = ("unknown_labels",)
DELIMITERS = ("|", ";", ",", "\t")
WIDE_CELLS = dict.fromkeys(("1", "1.0", "true", "yes", "x"), PRESENT)
WIDE_CELLS |= dict.fromkeys(("0", "0.0", "false", "no"), ABSENT)
WIDE_CELLS |= dict.fromkeys(("", "-1", "?"), UNKNOWN)
MARKUP = re.compile(r"<[a-zA-Z/!]|[\x00-\x1f]")
LONGEST_PATH = 4000
MOST_NAMED = 10  # how many bad rows an error lists


@dataclass(frozen=True)
class Sheet:
    """The cells of a label file. Row i of `rows` stands in line `lines[i]` of the file."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, names: Iterable[str]) -> int | None:
        found = [i for i, cell in enumerate(self.header) if cell.lower().replace(" ", "_") in names]
        return found[0] if found else None

    def at(self, row: int) -> str:
        return f"{self.path.name}, row {self.lines[row]}"


def read_csv(path: Path, config: DataConfig) -> Table:
    """A table from a CSV or TSV file whose images lie beside it, or in one folder beside it."""
    sheet = _read_sheet(path)
    file_column = sheet.column(FILE_COLUMNS)
    if file_column is None:
        raise DataError(
            f"{path} has no column with the image files (row 1 has: {', '.join(sheet.header)}); call it 'file_name'"
        )
    notes: list[str] = []
    _refuse_duplicates(sheet, file_column, config)
    root, sheet = _image_folder(sheet, file_column, config, notes)
    keys = [row[file_column].strip() for row in sheet.rows]
    label_column = sheet.column(LABEL_COLUMNS)
    if label_column is not None:
        labels, matrix = _delimited(sheet, label_column, config, notes)
    else:
        labels, matrix = _wide(sheet, config)
        notes.append(f"wide label columns: {len(labels)} labels, blank cells are {config.blank}")
    table = Table(
        name=path.parent.name or path.stem,
        source=FileSource(root),
        keys=np.array(keys, dtype=str),
        labels=labels,
        matrix=matrix,
        split=_splits(sheet),
    )
    if len(set(keys)) < len(keys):
        table = _merged(sheet, table, notes)
    return replace(table, notes=tuple(notes))


# --- the file ---------------------------------------------------------------------------------------------------


def _read_sheet(path: Path) -> Sheet:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, row {line}: not UTF-8 text; save the file with UTF-8 encoding") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not text.strip():
        raise DataError(f"{path} is empty; it needs a header row such as 'file_name,labels' and one row per image")
    first = text.lstrip("\r\n").split("\n", 1)[0]
    separator = max((",", "\t", ";"), key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: list[str] = []
    rows, lines = [], []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = _checked_header(path, cells)
            elif len(cells) != len(header):
                raise DataError(
                    f"{path}, row {reader.line_num}: {len(cells)} cells where the header has {len(header)}; "
                    "put cells that contain the separator in double quotes"
                )
            elif any("\n" in cell or "\r" in cell for cell in cells):
                raise DataError(
                    f"{path}, row {reader.line_num}: a cell runs over several lines; is a quote not closed?"
                )
            else:
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"{path}, row {reader.line_num}: {error}; is a quote not closed?") from error
    if not rows:
        raise DataError(f"{path} has a header but no rows; add one row per image")
    return Sheet(path, header, rows, lines)


def _checked_header(path: Path, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    for name, count in Counter(cell.lower() for cell in header).items():
        if count > 1:
            raise DataError(f"{path}, row 1: {count} columns are called {name!r}; rename or delete one")
    for kind in (FILE_COLUMNS, LABEL_COLUMNS, SPLIT_COLUMNS):
        same = [cell for cell in header if cell.lower().replace(" ", "_") in kind]
        if len(same) > 1:
            raise DataError(f"{path}, row 1: columns {' and '.join(map(repr, same))} mean the same; keep one of them")
    if "" in header:
        raise DataError(f"{path}, row 1: column {header.index('') + 1} has no name")
    return header


def _refuse_duplicates(sheet: Sheet, column: int, config: DataConfig) -> None:
    """A second row for an image is an error, unless rows are to be merged."""
    first: dict[str, int] = {}
    twice: list[tuple[int, int]] = []
    for i, row in enumerate(sheet.rows):
        key = row[column].strip()
        if not key:
            raise DataError(f"{sheet.at(i)}: the image file is blank; fill it in or delete the row")
        if first.setdefault(key, i) != i:
            twice.append((first[key], i))
    if twice and config.duplicates == "error":
        a, b = twice[0]
        raise DataError(
            f"{sheet.at(b)}: {sheet.rows[b][column].strip()!r} already stands in row {sheet.lines[a]}"
            f"{_and_more(len(twice) - 1)}; delete one, or join their labels with --set data.duplicates=merge"
        )


def _merged(sheet: Sheet, table: Table, notes: list[str]) -> Table:
    """One row per image: what any of its rows says is present is, then what any says is absent, else unknown."""
    keys, first, group = np.unique(table.keys, return_index=True, return_inverse=True)
    matrix = np.full((len(keys), len(table.labels)), UNKNOWN, np.int8)
    np.maximum.at(matrix, group, table.matrix)  # PRESENT > ABSENT > UNKNOWN
    if table.split is not None:
        for i in np.flatnonzero(table.split != table.split[first][group]).tolist():
            raise DataError(
                f"{sheet.at(i)}: {str(table.keys[i])!r} is in another split than in row {sheet.lines[first[group[i]]]}"
            )
    notes.append(
        f"{len(table) - len(keys)} repeated rows were merged: an image has every label that any of its rows gives"
    )
    order = np.argsort(first)
    merged = replace(table, keys=keys, matrix=matrix, split=None if table.split is None else table.split[first])
    return merged.subset(order)


# --- the images -------------------------------------------------------------------------------------------------


def _image_folder(sheet: Sheet, column: int, config: DataConfig, notes: list[str]) -> tuple[Path, Sheet]:
    """The folder that file names are relative to (given, the label file's own, or one directly inside it), and the
    rows whose images are there."""
    home = sheet.path.parent
    keys = [row[column].strip() for row in sheet.rows]
    for i, key in enumerate(keys):
        if config.images is None and _escapes(key):
            raise DataError(
                f"{sheet.at(i)}: {key!r} leads out of the data folder; use names relative to {home}, "
                "or give the folder of the images with --set data.images=FOLDER"
            )
        if len(key) > LONGEST_PATH or "\0" in key:
            raise DataError(f"{sheet.at(i)}: {key[:40]!r}… is no file name")
    root = Path(config.images) if config.images is not None else _fullest(home, keys[:50])
    if not root.is_dir():
        raise DataError(f"data.images: {root} is not a folder")
    if root != home:
        notes.append(f"images are in {root.name}/")
    missing = [i for i, key in enumerate(keys) if not os.path.isfile(root / key)]
    if not missing:
        return root, sheet
    if config.missing == "error":
        named = "\n".join(f"  {sheet.at(i)}: {_missing(root, keys[i])}" for i in missing[:MOST_NAMED])
        raise DataError(
            f"{len(missing)} of {len(keys)} image files are missing in {root}:\n{named}"
            f"{_and_more(len(missing) - MOST_NAMED)}\nMend the rows, say where the images are with "
            "--set data.images=FOLDER, or go on without them with --set data.missing=drop"
        )
    notes.append(
        f"{len(missing)} rows were left out because their image files are not there, first {keys[missing[0]]!r}"
    )
    there = sorted(set(range(len(keys))) - set(missing))
    if not there:
        raise DataError(f"none of the {len(keys)} image files is in {root}; say where with --set data.images=FOLDER")
    return root, Sheet(sheet.path, sheet.header, [sheet.rows[i] for i in there], [sheet.lines[i] for i in there])


def _fullest(home: Path, keys: list[str]) -> Path:
    """The label file's folder or one directly inside it: the one that has most of these files."""
    folders = [home, *sorted(path for path in home.iterdir() if path.is_dir())]
    return max(folders, key=lambda folder: sum(os.path.exists(folder / key) for key in keys))


def _missing(root: Path, key: str) -> str:
    return f"{key!r} is a folder, not an image" if (root / key).is_dir() else f"{key!r} is not there"


def _escapes(key: str) -> bool:
    """Absolute, or climbing out with '..' (a windows path is judged as one, too)."""
    return any(p(key).is_absolute() or ".." in p(key).parts for p in (PurePosixPath, PureWindowsPath))


def _splits(sheet: Sheet) -> np.ndarray | None:
    column = sheet.column(SPLIT_COLUMNS)
    if column is None:
        return None
    splits = []
    for i, row in enumerate(sheet.rows):
        cell = row[column].strip().lower()
        if cell not in SPLITS:
            raise DataError(f"{sheet.at(i)}: split {row[column]!r} is none we know{closest(cell, SPLITS)}")
        splits.append(SPLITS[cell])
    return np.array(splits, dtype=str)


# --- the labels -------------------------------------------------------------------------------------------------


def _delimited(sheet: Sheet, column: int, config: DataConfig, notes: list[str]) -> tuple[LabelSpace, np.ndarray]:
    unknown_column = sheet.column(UNKNOWN_COLUMNS)
    understood = {
        *FILE_COLUMNS,
        *LABEL_COLUMNS,
        *SPLIT_COLUMNS,
        *UNKNOWN_COLUMNS,
        *map(str.lower, config.ignore_columns),
    }
    odd = [name for name in sheet.header if name.lower().replace(" ", "_") not in understood]
    if odd:
        ignored = ", ".join([*config.ignore_columns, *odd])
        raise DataError(
            f"{sheet.path}, row 1: column {' and '.join(map(repr, odd))} is not one we know (file_name, labels, split, "
            f"unknown_labels); delete it, or leave it out with --set 'data.ignore_columns=[{ignored}]'"
        )
    cells = [row[column] for row in sheet.rows]
    delimiter = config.delimiter or detect_delimiter(cells)
    notes.append(f"labels separated by {delimiter!r}" if delimiter else "one label per image: no delimiter found")
    lists = [_names(cell, delimiter) for cell in cells]
    if config.delimiter is None and delimiter:
        _refuse_mixed_delimiters(sheet, cells, delimiter, lists)
    hidden = [_names(row[unknown_column], delimiter) if unknown_column is not None else [] for row in sheet.rows]
    for i, names in enumerate(lists):
        _check_names(sheet, i, names, config)
        _check_names(sheet, i, hidden[i], config)
    spelled = {name for names in (*lists, *hidden) for name in names}
    if not spelled:
        raise DataError(
            f"{sheet.path}: no row has a label in column {sheet.header[column]!r}; there is nothing to learn"
        )
    labels = _label_space(sheet, sorted(spelled))
    matrix = labels.matrix([[labels.index(name) for name in names] for names in lists])
    for i, names in enumerate(hidden):
        for name in names:
            if matrix[i, labels.index(name)] == PRESENT:
                raise DataError(f"{sheet.at(i)}: label {name!r} is given as present and as unknown")
            matrix[i, labels.index(name)] = UNKNOWN
    return labels, matrix


def _names(cell: str, delimiter: str | None) -> list[str]:
    parts = cell.split(delimiter) if delimiter else [cell]
    return [part.strip() for part in parts if part.strip()]


def _check_names(sheet: Sheet, row: int, names: list[str], config: DataConfig) -> None:
    if len(set(map(label_key, names))) != len(names):
        name = next(name for name, count in Counter(map(label_key, names)).items() if count > 1)
        raise DataError(f"{sheet.at(row)}: label {name!r} stands twice; delete one")
    if not config.allow_markup:
        for name in names:
            if MARKUP.search(name):
                raise DataError(
                    f"{sheet.at(row)}: label {name!r} looks like markup, not a name; mend it, "
                    "or keep it (it is escaped wherever it is shown) with --set data.allow_markup=true"
                )


def _label_space(sheet: Sheet, names: list[str]) -> LabelSpace:
    try:
        return LabelSpace(tuple(names))
    except DataError as error:
        raise DataError(f"{sheet.path}: {error}") from None


def detect_delimiter(cells: list[str]) -> str | None:
    """The delimiter that most cells contain; a space only where it clearly separates words of a small vocabulary."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    counts = {delimiter: sum(delimiter in cell for cell in filled) for delimiter in DELIMITERS}
    best = max(DELIMITERS, key=lambda delimiter: counts[delimiter])
    if counts[best]:
        return best
    distinct = set(filled)
    words = {word for cell in distinct for word in cell.split()}
    return " " if any(" " in cell for cell in distinct) and 3 * len(words) < 2 * len(distinct) else None


def _refuse_mixed_delimiters(sheet: Sheet, cells: list[str], delimiter: str, lists: list[list[str]]) -> None:
    """A cell with only another delimiter whose pieces are labels elsewhere was written by another hand."""
    vocabulary = {name for names in lists if len(names) > 1 for name in names}
    for i, cell in enumerate(cells):
        for other in DELIMITERS:
            if other != delimiter and other in cell and delimiter not in cell:
                pieces = _names(cell, other)
                if len(pieces) > 1 and all(piece in vocabulary for piece in pieces):
                    raise DataError(
                        f"{sheet.at(i)}: {cell!r} separates labels by {other!r} where other rows use {delimiter!r}; "
                        "use one delimiter, or name it with --set data.delimiter=…"
                    )


def _wide(sheet: Sheet, config: DataConfig) -> tuple[LabelSpace, np.ndarray]:
    others = {*FILE_COLUMNS, *SPLIT_COLUMNS, *map(str.lower, config.ignore_columns)}
    columns = [i for i, name in enumerate(sheet.header) if name.lower().replace(" ", "_") not in others]
    if not columns:
        raise DataError(f"{sheet.path}, row 1: no label column; add 'labels', or one 0/1 column per label")
    labels = _label_space(sheet, [sheet.header[i] for i in columns])
    for name in labels:
        if MARKUP.search(name) and not config.allow_markup:
            raise DataError(
                f"{sheet.path}, row 1: label {name!r} looks like markup, not a name; mend it, "
                "or keep it (it is escaped wherever it is shown) with --set data.allow_markup=true"
            )
    cells = WIDE_CELLS | ({"": ABSENT} if config.blank == "absent" else {})
    matrix = np.empty((len(sheet.rows), len(columns)), np.int8)
    for i, row in enumerate(sheet.rows):
        for j, column in enumerate(columns):
            value = cells.get(row[column].strip().lower())
            if value is None:
                raise DataError(
                    f"{sheet.at(i)}, column {sheet.header[column]!r}: {row[column]!r} is not 1, true, yes, x "
                    f"(present), 0, false, no (absent) or blank (unknown); "
                    f"if it is no label, --set 'data.ignore_columns=[{sheet.header[column]}]'"
                )
            matrix[i, j] = value
    return labels, matrix


def _and_more(count: int) -> str:
    return f" (and {count} more)" if count > 0 else ""

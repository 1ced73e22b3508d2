"""CSV and TSV label files: one row per image, labels delimited in one cell or as wide 0/1/blank columns.

A file is read twice and never held in memory: first to see which delimiter it uses, then row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.joined import joined
from manylabel.data.read.label_cells import Delimited, Survey, Wide
from manylabel.data.read.places import SAMPLE, image_root
from manylabel.data.read.sheet import (
    ABSENT_COLUMNS,
    FILE_COLUMNS,
    GROUP_COLUMNS,
    LABEL_COLUMNS,
    SPLIT_COLUMNS,
    open_sheet,
    plain_name,
)
from manylabel.data.read.split_files import split_files
from manylabel.data.read.split_name import split_of
from manylabel.data.record import Reading, Record
from manylabel.data.source import FileSource
from manylabel.error import DataError
from manylabel.labels import ABSENT, UNKNOWN

SUFFIXES = (".csv", ".tsv")
NAMED = 12  # columns in a message


def read_csv(path: Path, config: DataConfig) -> Reading:
    """A CSV or TSV file whose images lie beside it, or in one folder beside it."""
    sheet = open_sheet(path)
    file_column = sheet.files()
    if file_column is None:
        has = ", ".join(sheet.header[:NAMED]) + (
            f" … and {more} more" if (more := len(sheet.header) - NAMED) > 0 else ""
        )
        raise DataError(f"{path} has no column with the image files (row 1 has: {has}); call it 'file_name'")
    notes: list[str] = []
    if plain_name(sheet.header[file_column]) not in FILE_COLUMNS:
        notes.append(f"the image files are in column {sheet.header[file_column]!r}")
    label_column = sheet.column(LABEL_COLUMNS)
    if label_column is not None:
        survey = Survey.of(sheet, label_column)
        cells: Delimited | Wide = Delimited(sheet, label_column, config, survey, notes)
        labels = None
        rest = UNKNOWN if sheet.column(ABSENT_COLUMNS) is not None else ABSENT
        total = survey.rows
    else:
        cells = Wide(sheet, config, notes)
        labels = cells.labels
        rest = UNKNOWN
        total = cells.rows
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


# --- a file for each split --------------------------------------------------------------------------------------


def _split_sheets(folder: Path) -> list[tuple[str, Path]]:
    """(split, file) of train.csv, val.csv, test.csv, or of the one CSV in each of the folders train/, val/, test/."""
    beside = [path for path in _sheets(folder) if split_of(path) is not None]
    if len(beside) > 1:
        return [(str(split_of(path)), path) for path in beside]
    parts = split_files(folder, lambda place: _only_sheet(place) if place != folder else None)
    return [(part.split, part.path) for part in parts if part.split is not None]


def _sheets(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.name[0] != "." and p.is_file())


def _only_sheet(folder: Path) -> Path | None:
    found = _sheets(folder)
    return found[0] if len(found) == 1 else None


def _open(path: Path, config: DataConfig) -> Reading:
    if not path.is_dir():
        return read_csv(path, config)
    parts = _split_sheets(path)
    if not parts:
        raise DataError(f"{path} has no CSV or TSV file with labels in it, or several; name the file")
    return joined(path, [(split, read_csv(file, config)) for split, file in parts])


def _sniff(path: Path) -> str:
    if not path.is_dir():
        return f"{path.suffix.lower()[1:]} file" if path.suffix.lower() in SUFFIXES else ""
    try:
        if any(file.stem == "labels" for file in _sheets(path)):
            return ""  # that one is meant
        parts = _split_sheets(path)
        alike = len(parts) > 1 and len({open_sheet(file).header for _, file in parts}) == 1
    except (DataError, OSError):
        return ""
    return ", ".join(file.relative_to(path).as_posix() for _, file in parts) if alike else ""


FORMAT = Format("csv", "CSV or TSV", _sniff, _open)

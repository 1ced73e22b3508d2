"""CSV and TSV label files: one row per image, labels delimited in one cell or as wide 0/1/blank columns."""

from __future__ import annotations

from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.rows import LabelFile, Rows, label_files, read_rows
from manylabel.data.read.sheet import open_sheet
from manylabel.data.read.split_name import split_of
from manylabel.data.record import Format, Reading
from manylabel.error import DataError

SUFFIXES = (".csv", ".tsv")


def sheet_rows(path: Path, name: str = "") -> Rows:
    """(place, fields) of every row; `name` is what messages call the file."""
    sheet = open_sheet(path)
    name = name or path.name
    for line, cells in sheet.rows():
        yield f"{name}, row {line}", dict(zip(sheet.header, cells, strict=True))


def read_csv(path: Path, config: DataConfig) -> Reading:
    """A file whose images lie beside it or in one folder beside it, or a folder with such a file for each split."""
    files = _split_sheets(path) if path.is_dir() else [LabelFile(path)]
    if not files:
        raise DataError(f"{path} has no CSV or TSV file with labels in it, or several; name the file")
    headers = [open_sheet(file.path).header for file in files]
    for file, header in zip(files, headers, strict=True):
        if header != headers[0]:
            raise DataError(
                f"{files[0].path} and {file.path} have different columns; make them alike, or name one file"
            )
    return read_rows(path, files, lambda file: sheet_rows(file.path), config, sheet=True)


def _split_sheets(folder: Path) -> list[LabelFile]:
    """train.csv, val.csv, test.csv, or the one CSV in each of the folders train/, val/, test/."""
    beside = [LabelFile(path, split=split_of(path)) for path in _sheets(folder)]
    beside = [file for file in beside if file.split]
    if len(beside) > 1:
        return beside
    return [file for file in label_files(folder, lambda at: _only_sheet(at) if at != folder else None) if file.split]


def _sheets(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.name[0] != "." and p.is_file())


def _only_sheet(folder: Path) -> Path | None:
    found = _sheets(folder)
    return found[0] if len(found) == 1 else None


def _sniff(path: Path) -> str:
    if not path.is_dir():
        return f"{path.suffix.lower()[1:]} file" if path.suffix.lower() in SUFFIXES else ""
    try:
        if any(file.stem == "labels" for file in _sheets(path)):
            return ""  # that one is meant
        files = _split_sheets(path)
        alike = len(files) > 1 and len({open_sheet(file.path).header for file in files}) == 1
    except (DataError, OSError):
        return ""
    return ", ".join(file.path.relative_to(path).as_posix() for file in files) if alike else ""


FORMAT = Format("csv", "CSV or TSV", _sniff, read_csv)

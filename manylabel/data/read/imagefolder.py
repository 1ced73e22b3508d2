"""Hugging Face imagefolder: metadata.csv, .jsonl or .parquet with `file_name`, at the top or in each split's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.jsonl import json_lines
from manylabel.data.read.places import image_root
from manylabel.data.read.row import RowLayout
from manylabel.data.read.sheet import open_sheet
from manylabel.data.read.split_files import SplitFile, split_files
from manylabel.data.record import Reading, Record
from manylabel.data.shard.arrow_image import need_pyarrow
from manylabel.data.shard.parquet_source import open_parquet
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.error import DataError

FILES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
Row = tuple[str, Mapping[str, Any]]  # place for messages, fields


def _sheet_rows(path: Path, name: str) -> Iterator[Row]:
    sheet = open_sheet(path)
    for line, cells in sheet.rows():
        yield f"{name}, row {line}", dict(zip(sheet.header, cells, strict=True))


def _parquet_rows(path: Path, name: str) -> Iterator[Row]:
    pyarrow = need_pyarrow("Parquet")
    number = 0
    try:
        for batch in open_parquet(path).iter_batches(use_threads=False):
            for row in batch.to_pylist():
                number += 1
                yield f"{name}, row {number}", row
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} is damaged after row {number} ({str(error)[:120]}); write it again") from error


_ROWS: dict[str, Callable[[Path, str], Iterator[Row]]] = {
    ".jsonl": json_lines,
    ".csv": _sheet_rows,
    ".parquet": _parquet_rows,
}


def _rows(part: SplitFile) -> Iterator[Row]:
    suffix = part.path.suffix.lower()
    if suffix not in _ROWS:
        raise DataError(f"{part.path} is none of metadata{', metadata'.join(_ROWS)}; name the folder that holds one")
    return _ROWS[suffix](part.path, part.name)


def read_imagefolder(path: Path, config: DataConfig) -> Reading:
    """A folder of images with metadata files, or one metadata file."""
    home = path if path.is_dir() else path.parent
    parts = _parts(home) if path.is_dir() else [SplitFile(path)]
    if not parts:
        raise DataError(f"{path} holds no {', '.join(FILES)}, neither at the top nor in train/, validation/ or test/")
    if (home / "data").is_dir() and parts[0].path.is_relative_to(home / "data"):
        home = home / "data"
    folders = _SplitFolders()
    rows = (row for part in parts for row in folders.watch(part))
    layout = RowLayout.of((), rows, config, path)
    if layout.file != "file_name":
        raise DataError(f"{parts[0].path}: no field 'file_name' (found {layout.file!r}); rename it")
    notes = list(layout.notes)
    root = home if config.images is None else image_root(home, [], config, notes)
    by_folder = layout.split is None and folders.tell

    def records() -> Iterator[Record]:
        for part in parts:
            for where, row in _rows(part):
                record = layout.record(row, where)
                split = record.split if layout.split else part.split
                if by_folder and split is None:
                    split = record.key.partition("/")[0]
                yield replace(record, key=part.folder + record.key, split=split)

    return layout.reading("imagefolder", path, FileSource(root), records, notes)


class _SplitFolders:
    """Whether every file name begins with the name of a split: 'train/a.jpg' in one metadata file at the top."""

    def __init__(self) -> None:
        self.outside = False
        self.splits: set[str] = set()

    @property
    def tell(self) -> bool:
        return not self.outside and len(self.splits) > 1

    def watch(self, part: SplitFile) -> Iterator[Mapping[str, Any]]:
        for _, row in _rows(part):
            folder = str(row.get("file_name", "")).partition("/")[0].lower()
            self.outside |= folder not in SPLITS
            self.splits.add(SPLITS.get(folder, ""))
            yield row


def _parts(home: Path) -> list[SplitFile]:
    """The metadata files of a folder, or of data/ inside it."""
    folders = [folder for folder in (home, home / "data") if folder.is_dir()]
    return next((found for folder in folders if (found := split_files(folder, _metadata))), [])


def _metadata(folder: Path) -> Path | None:
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if len(found) > 1:
        raise DataError(f"{folder} holds {' and '.join(file.name for file in found)}; keep one of them")
    return found[0] if found else None


def _sniff(path: Path) -> str:
    try:
        if path.is_file():
            return path.name if path.name in FILES and _names_files(path) else ""
        parts = _parts(path)
        return parts[0].name if parts and _names_files(parts[0].path) else ""
    except (DataError, OSError):
        return ""


def _names_files(path: Path) -> bool:
    """Whether the first row has `file_name`: a metadata.csv may be anything."""
    first = next(_ROWS[path.suffix.lower()](path, path.name), None)
    return first is not None and "file_name" in first[1]


FORMAT = Format("imagefolder", "Hugging Face imagefolder", _sniff, read_imagefolder)

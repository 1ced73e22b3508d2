"""Hugging Face imagefolder: metadata.csv, .jsonl or .parquet with `file_name`, at the top or in each split's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.columns import KINDS, plain_name
from manylabel.data.read.csv import sheet_rows
from manylabel.data.read.jsonl import json_lines
from manylabel.data.read.rows import LabelFile, Rows, label_files, read_rows
from manylabel.data.record import Format, Reading
from manylabel.data.shard.arrow_image import need_pyarrow
from manylabel.data.shard.parquet_source import open_parquet
from manylabel.data.table import SPLITS
from manylabel.error import DataError

FILES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")


def _parquet_rows(path: Path, name: str) -> Rows:
    pyarrow = need_pyarrow("Parquet")
    number = 0
    try:
        for batch in open_parquet(path).iter_batches(use_threads=False):
            for row in batch.to_pylist():
                number += 1
                yield f"{name}, row {number}", row
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} is damaged after row {number} ({str(error)[:120]}); write it again") from error


_ROWS: dict[str, Callable[[Path, str], Rows]] = {".jsonl": json_lines, ".csv": sheet_rows, ".parquet": _parquet_rows}


def _rows(file: LabelFile) -> Rows:
    if file.path.suffix.lower() not in _ROWS:
        raise DataError(f"{file.path} is none of metadata{', metadata'.join(_ROWS)}; name the folder that holds one")
    return _ROWS[file.path.suffix.lower()](file.path, file.name)


def read_imagefolder(path: Path, config: DataConfig) -> Reading:
    """A folder of images with metadata files, or one metadata file."""
    home = path if path.is_dir() else path.parent
    files = _files(home) if path.is_dir() else [LabelFile(path)]
    if not files:
        raise DataError(f"{path} holds no {', '.join(FILES)}, neither at the top nor in train/, validation/ or test/")
    if (home / "data").is_dir() and files[0].path.is_relative_to(home / "data"):
        home = home / "data"
    by_folder = len(files) == 1 and files[0].split is None and _splits_by_folder(files[0])

    def rows(file: LabelFile) -> Rows:
        for where, row in _rows(file):
            yield where, {**row, "split": str(row["file_name"]).partition("/")[0]} if by_folder else row

    return read_rows(path, files, rows, config, root=home, names="file_name")


def _splits_by_folder(file: LabelFile) -> bool:
    """Whether every file name begins with the name of a split: 'train/a.jpg' in one metadata file at the top."""
    splits: set[str | None] = set()
    for _, row in _rows(file):
        if any(plain_name(name) in KINDS["split"] for name in row):
            return False
        splits.add(SPLITS.get(str(row.get("file_name", "")).partition("/")[0].lower()))
    return None not in splits and len(splits) > 1


def _files(home: Path) -> list[LabelFile]:
    """The metadata files of a folder, or of data/ inside it."""
    folders = [folder for folder in (home, home / "data") if folder.is_dir()]
    return next((found for folder in folders if (found := label_files(folder, _metadata))), [])


def _metadata(folder: Path) -> Path | None:
    found = [folder / name for name in FILES if (folder / name).is_file()]
    if len(found) > 1:
        raise DataError(f"{folder} holds {' and '.join(file.name for file in found)}; keep one of them")
    return found[0] if found else None


def _sniff(path: Path) -> str:
    try:
        if path.is_file():
            return path.name if path.name in FILES and _names_files(path) else ""
        files = _files(path)
        return files[0].name if files and _names_files(files[0].path) else ""
    except (DataError, OSError):
        return ""


def _names_files(path: Path) -> bool:
    """Whether the first row has `file_name`: a metadata.csv may be anything."""
    first = next(_ROWS[path.suffix.lower()](path, path.name), None)
    return first is not None and "file_name" in first[1]


FORMAT = Format("imagefolder", "Hugging Face imagefolder", _sniff, read_imagefolder)

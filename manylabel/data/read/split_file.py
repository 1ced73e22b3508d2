"""Which image is in which part, in a CSV of its own: file_name,split or file_name,fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.read.sheet import open_sheet
from manylabel.data.table import SPLITS, Table
from manylabel.error import DataError
from manylabel.spreadsheet import refuse_cell, safe_cell, sheet_writer
from manylabel.storage.receipt import replacing_ours
from manylabel.suggest import closest


def write_split_file(path: Path, parts: Mapping[str, str | int], column: str = "split") -> None:
    """`parts` maps each image to its split, or with column='fold' to its fold."""
    with replacing_ours(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        rows = sheet_writer(file)
        rows.writerow(["file_name", column])
        for key, part in parts.items():
            refuse_cell(key, str(path), "the name")
            rows.writerow((safe_cell(key), part))


def is_split_file(path: Path) -> bool:
    """Whether this is a file of ours beside the data, and so not its labels."""
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.readline(100).removeprefix(b"\xef\xbb\xbf").strip() in (b"file_name,split", b"file_name,fold")


def read_parts(path: Path, column: str = "split") -> dict[str, str]:
    """Image → part."""
    sheet = open_sheet(path)
    name, part = sheet.column(("file_name",)), sheet.column((column,))
    if name is None or part is None:
        raise DataError(f"{path}, row 1: needs the columns file_name and {column}, not {', '.join(sheet.header)}")
    parts: dict[str, str] = {}
    for line, row in sheet.rows():
        if parts.setdefault(row[name], row[part].strip()) != row[part].strip():
            raise DataError(f"{sheet.at(line)}: {row[name]!r} is in another part than before; delete one of the rows")
    return parts


def split_of_rows(path: Path, keys: Iterable[str]) -> np.ndarray:
    """The split of each image, '' for images that the file does not name."""
    parts = read_parts(path)
    return np.array([parts.get(str(key), "") for key in keys])


def chosen_split(config: DataConfig) -> Callable[[str], str] | None:
    """Image → split as data.split_file says; with data.fold that fold is 'val' and the others are 'train'."""
    if config.split_file is None:
        if config.fold is not None:
            raise DataError("data.fold needs data.split_file, made by 'manylabel data split --folds'")
        return None
    path = Path(config.split_file)
    parts = read_parts(path, "split" if config.fold is None else "fold")
    names = sorted(set(parts.values()))
    if config.fold is not None and str(config.fold) not in names:
        raise DataError(f"{path} has no fold {config.fold}; its folds are {', '.join(names)}")
    for name in names if config.fold is None else ():
        if name not in SPLITS:
            raise DataError(f"{path}: split {name!r} is none we know{closest(name, SPLITS)}")

    def split(key: str) -> str:
        if key not in parts:
            raise DataError(f"{path} does not name the image {key!r}; make it again with 'manylabel data split'")
        if config.fold is not None:
            return "val" if parts[key] == str(config.fold) else "train"
        return SPLITS[parts[key]]

    return split


def with_split_file(table: Table, config: DataConfig) -> Table:
    """The table with the split of data.split_file, if there is one."""
    split = chosen_split(config)
    return table if split is None else replace(table, split=np.array([split(str(key)) for key in table.keys]))

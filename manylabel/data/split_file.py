"""Which image is in which part, in a CSV of its own: file_name,split or file_name,fold."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from manylabel.atomic import replacing
from manylabel.config import DataConfig
from manylabel.data.table import SPLITS, Table
from manylabel.error import DataError
from manylabel.spreadsheet import plain_cell, safe_cell
from manylabel.suggest import closest


def write_split_file(path: Path, parts: Mapping[str, str | int], column: str = "split") -> None:
    """`parts` maps each image to its split, or with column='fold' to its fold."""
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["file_name", column])
        rows.writerows((safe_cell(key), part) for key, part in parts.items())


def read_parts(path: Path, table: Table, column: str = "split") -> np.ndarray:
    """The part of each image of a table, '' for images that the file does not name."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if column not in (rows.fieldnames or ()) or "file_name" not in (rows.fieldnames or ()):
                raise DataError(f"{path}, row 1: needs the columns file_name and {column}, not {rows.fieldnames}")
            parts = {plain_cell(row["file_name"]): row[column] or "" for row in rows}
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; make it again with 'manylabel data split'") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    return np.array([parts.get(str(key), "") for key in table.keys])


def with_split_file(table: Table, config: DataConfig) -> Table:
    """The table with the split of data.split_file; with data.fold, that fold is 'val' and the others are 'train'."""
    if config.split_file is None:
        if config.fold is not None:
            raise DataError("data.fold needs data.split_file, made by 'manylabel data split --folds'")
        return table
    path = Path(config.split_file)
    parts = read_parts(path, table, "split" if config.fold is None else "fold")
    missing = np.flatnonzero(parts == "")
    if len(missing):
        raise DataError(
            f"{path} does not name {len(missing)} of {len(table)} images, first {str(table.keys[missing[0]])!r}; "
            "make it again with 'manylabel data split'"
        )
    names = sorted(set(parts.tolist()))
    if config.fold is not None:
        if str(config.fold) not in names:
            raise DataError(f"{path} has no fold {config.fold}; its folds are {', '.join(names)}")
        return replace(table, split=np.where(parts == str(config.fold), "val", "train"))
    for name in names:
        if name not in SPLITS:
            raise DataError(f"{path}: split {name!r} is none we know{closest(name, SPLITS)}")
    return replace(table, split=np.array([SPLITS[part] for part in parts.tolist()]))

"""Images in a folder that Hugging Face `datasets` wrote with save_to_disk: Arrow files, mapped into memory.

dataset_dict.json                             of several splits; each is a folder as below
state.json   dataset_info.json   *.arrow      of one
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manylabel.data.file_stamp import file_stamp
from manylabel.data.shard.arrow_image import Cells, file_names, need_pyarrow, part_and_row, row_key
from manylabel.data.shard.recent import Recent
from manylabel.data.source import EncodedSource
from manylabel.error import DataError, DecodeError
from manylabel.storage.json_text import read_object

OPEN_PARTS = 16


def is_hf_folder(folder: Path) -> bool:
    return (folder / "dataset_dict.json").is_file() or is_hf_part(folder)


def is_hf_part(folder: Path) -> bool:
    return (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()


def hf_parts(folder: Path) -> dict[str, Path]:
    """The splits by name; a folder without splits is one part called 'data'."""
    if not (folder / "dataset_dict.json").is_file():
        return {"data": folder}
    names = _json(folder / "dataset_dict.json").get("splits")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise DataError(f"{folder / 'dataset_dict.json'} names no splits; save the data set again with save_to_disk")
    for name in names:
        if name != os.path.basename(name) or name in (".", "..") or not is_hf_part(folder / name):
            raise DataError(
                f"{folder}: there is no folder for split {name!r}; save the data set again with save_to_disk"
            )
    return {name: folder / name for name in names}


def _json(path: Path) -> dict[str, Any]:
    return read_object(path, advice="save the data set again with save_to_disk")


def hf_features(folder: Path) -> dict[str, Any]:
    """What a part says about its columns."""
    features = _json(folder / "dataset_info.json").get("features")
    return features if isinstance(features, dict) else {}


def hf_files(folder: Path) -> list[Path]:
    """The Arrow files of a part, in order."""
    state = folder / "state.json"
    content = _json(state)
    if content.get("_indices_data_files"):
        raise DataError(f"{folder} is a selection that was saved without its rows; save it after flatten_indices()")
    entries = content.get("_data_files")
    names = [entry.get("filename") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    for name in names:
        if not isinstance(name, str) or name != os.path.basename(name) or not (folder / name).is_file():
            raise DataError(f"{state}: the data file {name!r} is not there; save the data set again with save_to_disk")
    if not names:
        raise DataError(f"{state} names no data files; save the data set again with save_to_disk")
    return [folder / str(name) for name in names]


def hf_table(folder: Path) -> Any:
    """A part as a pyarrow Table that lies in the files, not in memory."""
    pyarrow = need_pyarrow("a folder of `datasets`")
    tables = []
    for path in hf_files(folder):
        try:
            tables.append(pyarrow.ipc.open_stream(pyarrow.memory_map(str(path))).read_all())
            tables[-1].validate()
            tables[-1].schema.names  # noqa: B018 (decodes them)
        except (pyarrow.ArrowException, OSError, ValueError, ArithmeticError) as error:
            raise DataError(f"{path} is cut off or damaged; save the data set again with save_to_disk") from error
    if any(table.schema.names != tables[0].schema.names for table in tables):
        raise DataError(f"{folder}: its Arrow files have different columns; save the data set again with save_to_disk")
    return pyarrow.concat_tables(tables)


@dataclass(frozen=True, eq=False)
class HfSource(EncodedSource):
    """A key is the name of a split and a row in it, counted from 0: 'train/0000017'."""

    root: Path
    column: str
    parts: dict[str, Path]
    stamps: dict[str, str]
    cells: Cells
    _columns: Recent[str, Any] = field(default_factory=lambda: Recent(OPEN_PARTS), repr=False)
    _names: Recent[str, Any] = field(default_factory=lambda: Recent(OPEN_PARTS), repr=False)  # files that cells name

    @classmethod
    def of(cls, root: Path, parts: dict[str, Path], column: str, images: str | None = None) -> HfSource:
        folders = (root,) if images is None else (Path(images), root)
        stamps = {name: "|".join(map(file_stamp, hf_files(part))) for name, part in parts.items()}
        return cls(root, column, parts, stamps, Cells(folders))

    def raw(self, key: str) -> bytes:
        name, row = part_and_row(key)
        column = self._columns.get(name, lambda: self._open(name))
        if row >= len(column):
            raise DecodeError(f"there is no {key!r} in {self.root}")
        return self.cells.image(column[row].as_py())

    def _open(self, name: str) -> Any:
        if name not in self.parts:
            raise DecodeError(f"there is no split {name!r} in {self.root}")
        try:
            column = hf_table(self.parts[name]).column(self.column)
            column.validate(full=True)  # or a damaged file could make us read beyond it; looks at places, not at images
        except (DataError, ValueError) as error:
            raise DecodeError(str(error)) from error
        return column

    def stamp(self, key: str) -> str:
        name, row = part_and_row(key)
        names = self._names.get(name, lambda: self._file_names(name))
        beside = "" if names is None or row >= len(names) else self.cells.stamp(names[row].as_py())
        return f"{self.stamps[name]}|{self.column}|{row}|{beside}"

    def _file_names(self, name: str) -> Any:
        try:
            return file_names(self._columns.get(name, lambda: self._open(name)))
        except DecodeError:  # reading the images will tell
            return None

    def images(self) -> Iterator[tuple[str, str]]:
        """(name for people, key) of every row."""
        for name, folder in self.parts.items():
            for row in range(hf_table(folder).num_rows):
                yield f"{folder}:{row}", row_key(name, row)

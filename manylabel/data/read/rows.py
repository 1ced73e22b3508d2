"""Files of rows whose images lie beside them: one file, or one for each split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.finder import SAMPLE, image_root
from manylabel.data.read.columns import Columns
from manylabel.data.record import Reading, Record
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.error import DataError

Rows = Iterator[tuple[str, Mapping[str, Any]]]  # place for messages, fields


@dataclass(frozen=True)
class LabelFile:
    """A label file whose image names are relative to its own folder."""

    path: Path
    folder: str = ""  # under the top: '' or 'train/'
    split: str | None = None

    @property
    def name(self) -> str:
        """For messages: 'train/metadata.csv'."""
        return self.folder + self.path.name


def label_files(top: Path, find: Callable[[Path], Path | None]) -> list[LabelFile]:
    """What `find` finds at the top, else in each folder named like a split."""
    if file := find(top):
        return [LabelFile(file)]
    inside = sorted(folder for folder in top.iterdir() if folder.name.lower() in SPLITS and folder.is_dir())
    found = [LabelFile(file, f"{folder.name}/", folder.name) for folder in inside if (file := find(folder))]
    if len(found) == 1 and SPLITS[inside[0].name.lower()] == "train":
        return [LabelFile(found[0].path, found[0].folder)]  # nothing is held out, so this is no split
    return found


def read_rows(
    path: Path,
    files: list[LabelFile],
    rows: Callable[[LabelFile], Rows],
    config: DataConfig,
    *,
    sheet: bool = False,
    root: Path | None = None,
    names: str = "",
) -> Reading:
    """The reading of rows, which are gone through twice and never kept. With a `root` images are in the folders of their
    label files below it, or in data.images; without, they are looked for beside each. `names`: the only field that may
    name the images."""
    columns = Columns.of((row for file in files for _, row in rows(file)), config, path, sheet=sheet)
    if names and columns.file != names:
        raise DataError(f"{files[0].path}: no field {names!r} (found {columns.file!r}); rename it")
    notes = list(columns.notes)
    if root is None:
        home, folders = _homes(path, files, rows, columns, config, notes)
    else:
        home, folders = image_root(root, [], config, notes), [file.folder for file in files]

    def records() -> Iterator[Record]:
        for file, folder in zip(files, folders, strict=True):
            for where, row in rows(file):
                try:
                    record = columns.record(row, where)
                except RecursionError:  # lists in lists in lists, a thousand deep
                    raise DataError(f"{where}: nested too deep to be a row of labels") from None
                record.key = folder + record.key
                record.split = record.split or file.split
                yield record

    labels = columns.wide or None
    return Reading(path, FileSource(home), records, labels, columns.rest, notes=list(dict.fromkeys(notes)))


def _homes(
    path: Path,
    files: list[LabelFile],
    rows: Callable[[LabelFile], Rows],
    columns: Columns,
    config: DataConfig,
    notes: list[str],
) -> tuple[Path, list[str]]:
    """(a folder above all images, that of each file below it)"""
    roots = []
    for file in files:
        names = (row.get(columns.file) for _, row in islice(rows(file), SAMPLE))
        roots.append(
            image_root(file.path.parent, [name.strip() for name in names if isinstance(name, str)], config, notes)
        )
    if len(set(roots)) == 1:
        return roots[0], [""] * len(files)
    if any(path not in (root, *root.parents) for root in roots):
        raise DataError(f"the images of {files[0].path} and the others lie in different places; name one file")
    return path, ["" if root == path else f"{root.relative_to(path).as_posix()}/" for root in roots]

"""What a command reads is never what it writes, whoever wrote it once and whatever was asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read import find_format
from manylabel.data.walk import is_image_name
from manylabel.error import DataError

ALONE = ("csv", "jsonl", "json", "parquet", "coco")  # formats whose label file, where one is named, is all


def refuse_own(outputs: Iterable[Path], config: DataConfig) -> None:
    """Stop if a file that would be written is one that this data is read from, by whatever name or link."""
    there = {_identity(path): path for path in outputs if path.exists()}
    if not there or config.path == "scenes":
        return
    for path in _read(config):
        if (found := there.get(_identity(path))) is not None:
            raise DataError(f"{found} is there already: it is the data itself, or part of it; choose another name")


def _read(config: DataConfig) -> Iterator[str]:
    """Every file of labels; of a folder all that are no images, for its format may read any of them."""
    yield from (path for path in (config.path, config.labels, config.split_file) if path)
    path, kind, _ = find_format(config)
    yield str(path)
    if path.is_dir() or kind.name not in ALONE:
        yield from _files_below(path if path.is_dir() else path.parent)


def _files_below(top: Path) -> Iterator[str]:
    entered: set[object] = set()  # a link may lead back
    for here, folders, names in os.walk(top, followlinks=True):
        if (identity := _identity(here)) in entered:
            folders.clear()
            continue
        entered.add(identity)
        yield from (os.path.join(here, name) for name in names if not is_image_name(name))


def _identity(path: str | Path) -> object:
    """The file behind every name that it has; the name itself where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return str(path)
    return facts.st_dev, facts.st_ino

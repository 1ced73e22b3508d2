"""Where the images of a label file are, and which names are allowed to say so."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

from manylabel.config import DataConfig
from manylabel.error import DataError

LONGEST_PATH = 4000


def image_root(home: Path, keys: list[str], config: DataConfig, notes: list[str]) -> Path:
    """The folder that file names are relative to: data.images, else `home` or the folder directly inside it that has
    most of these (the first few) files."""
    if config.images is not None:
        root = Path(config.images)
        if not root.is_dir():
            raise DataError(f"data.images: {root} is not a folder")
    else:
        usable = [key for key in keys if not escapes(key) and is_file_name(key)]
        folders = [home, *sorted(path for path in home.iterdir() if path.is_dir())]
        root = max(folders, key=lambda folder: sum(os.path.exists(folder / key) for key in usable))
    if root != home:
        notes.append(f"images are in {root.name}/")
    return root


def is_file_name(key: str) -> bool:
    return len(key) <= LONGEST_PATH and "\0" not in key


def escapes(key: str) -> bool:
    """Absolute, or climbing out with '..' (a windows path is judged as one, too)."""
    if ".." not in key and key[:1] not in "/\\" and ":" not in key:
        return False  # nearly always; paths are slow to take apart
    return any(p(key).is_absolute() or ".." in p(key).parts for p in (PurePosixPath, PureWindowsPath))


def why_missing(root: Path, key: str) -> str:
    path = root / key
    if path.is_dir():
        return f"{key!r} is a folder, not an image"
    if path.is_symlink():
        return f"{key!r} is a link that leads nowhere or to itself"
    return f"{key!r} is not there"

"""Where the images of a label file are, and which names are allowed to say so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from manylabel.config import DataConfig
from manylabel.data.walk import IMAGE_SUFFIXES, ImageIndex, is_image_name
from manylabel.error import DataError

LONGEST_PATH = 4000
SAMPLE = 50  # rows looked at to find the folder of the images
SUFFIXES = [case for suffix in sorted(IMAGE_SUFFIXES) for case in (suffix, suffix.upper())]
SUFFIXES.sort(key=lambda suffix: suffix.lower() not in (".jpg", ".png", ".jpeg"))  # the usual ones first


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
        root = max(folders, key=lambda folder: sum(FileNames(folder).find(key) is not None for key in usable))
    if root != home:
        notes.append(f"images are in {root.name}/")
    return root


class FileNames:
    """Names in a label file → files under `root`, also where they differ as they do in practice: the suffix is left
    out or in other case, the separator is '\\', or the path is one of another machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mended = 0
        self.example = ""
        self._usual = ""  # the suffix that was missing the last time
        self._index: ImageIndex | None = None

    def find(self, name: str) -> str | None:
        """The file's path under the root; None if there is no such file."""
        name = name.removeprefix("./")
        if os.path.isfile(f"{self.root}/{name}"):
            return name
        for other in self._variants(name):
            if os.path.isfile(f"{self.root}/{other}"):
                return self._note(name, other)
        return None

    def find_by_end(self, name: str) -> str | None:
        """For a path of another machine or an address: the one file whose path ends like it."""
        inside = os.path.relpath(name, self.root) if os.path.isabs(name) else ".."
        if not escapes(inside) and os.path.isfile(f"{self.root}/{inside}"):
            return self._note(name, inside)
        if ".." in name.replace("\\", "/").split("/"):
            return None
        self._index = self._index or ImageIndex(self.root)
        found = self._index.find(name)
        return None if found is None else self._note(name, found)

    def _note(self, name: str, found: str) -> str:
        self.mended += 1
        self.example = self.example or f"{name!r} is {found!r}"
        return found

    def _variants(self, name: str) -> Iterator[str]:
        plain = name.replace("\\", "/").removeprefix("./")
        if plain != name:
            yield plain
        stem, suffix = os.path.splitext(plain)
        if is_image_name(plain):
            same = (".jpg", ".jpeg", ".JPG", ".JPEG") if suffix.lower() in (".jpg", ".jpeg") else (suffix.lower(),)
            yield from (stem + other for other in (*same, suffix.upper()) if other != suffix)
        else:
            for other in (self._usual, *SUFFIXES) if self._usual else SUFFIXES:
                self._usual = other
                yield plain + other
            self._usual = ""


def is_file_name(key: str) -> bool:
    return len(key) <= LONGEST_PATH and "\0" not in key


def escapes(key: str) -> bool:
    """Absolute, or climbing out with '..' (a windows path is judged as one, too)."""
    if ".." not in key and key[:1] not in "/\\" and ":" not in key:
        return False  # nearly always; paths are slow to take apart
    return any(p(key).is_absolute() or ".." in p(key).parts for p in (PurePosixPath, PureWindowsPath))


def why_missing(root: Path, key: str) -> str:
    path = root / key
    if "://" in key:
        return f"{key!r} is an address, and images are not fetched; download it first"
    if path.is_dir():
        return f"{key!r} is a folder, not an image"
    if path.is_symlink():
        return f"{key!r} is a link that leads nowhere or to itself"
    return f"{key!r} is not there"

"""Where the images of a label file are, and which names are allowed to say so."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from manylabel.config import DataConfig
from manylabel.data.table import SPLITS
from manylabel.data.walk import IMAGE_SUFFIXES, ImageIndex, is_image_name
from manylabel.error import DataError

LONGEST_PATH = 4000
SAMPLE = 50  # rows looked at to find the folder of the images
SUFFIXES = [case for suffix in sorted(IMAGE_SUFFIXES) for case in (suffix, suffix.upper())]
USUAL = 6
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
        folders = [home, *sorted(path for path in home.iterdir() if path.is_dir() and path.name[0] != ".")]
        counts = [sum(FileNames(folder).find(key) is not None for key in usable) for folder in folders]
        root = folders[counts.index(max(counts))]
        ties = [folder.name for folder, count in zip(folders, counts, strict=True) if count == max(counts) > 0]
        if root != home and len(ties) > 1:
            raise DataError(
                f"images called {usable[0]!r} and so on are in {ties[0]}/ and in {ties[1]}/ of {home}; say which are meant "
                f"with --set data.images={home / ties[0]}"
            )
    if root != home:
        notes.append(f"images are in {root.name}/")
    return root


class FileNames:
    """Names in a label file → files under `root`, also where they differ as they do in practice: the suffix is left
    out or in other case, the separator is '\\', or the path is one of another machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.taken: dict[str, str] = {}  # files found by the end of a path, and for which name
        self.mended = 0
        self.example = ""
        self._index: ImageIndex | None = None

    def find(self, name: str) -> str | None:
        """The file's path under the root; None if there is no such file."""
        if "./" in name or "//" in name:
            name = posixpath.normpath(name)  # or one image could stand in two parts under two names
        if os.path.isfile(f"{self.root}/{name}"):
            return name
        for others in self._variants(name):
            found = [other for other in others if os.path.isfile(f"{self.root}/{other}")]
            if len(found) == 1:
                return self._note(name, found[0])
            if found:  # a photo and its mask, perhaps: nobody can tell which is meant
                return None
        return None

    def find_by_end(self, name: str) -> str | None:
        """For a path of another machine or an address: the one file whose path ends like it."""
        inside = os.path.relpath(os.path.join(self.root, name), self.root)
        if not escapes(inside) and os.path.isfile(f"{self.root}/{inside}"):
            return self._note(name, inside)
        if ".." in name.replace("\\", "/").split("/"):
            return None
        self._index = self._index or ImageIndex(self.root)
        found = self._index.find(name)
        return None if found is None or contradicts(found, name) else self._note(name, found)

    def _note(self, name: str, found: str) -> str:
        self.mended += 1
        self.example = self.example or f"{name!r} is {found!r}"
        return found

    def _variants(self, name: str) -> Iterator[list[str]]:
        """Names it could have been, the likely ones first; those of one list are as likely as each other."""
        plain = posixpath.normpath(name.replace("\\", "/"))
        if plain != name:
            yield [plain]
        stem, suffix = os.path.splitext(plain)
        if is_image_name(plain):
            same = (".jpg", ".jpeg", ".JPG", ".JPEG") if suffix.lower() in (".jpg", ".jpeg") else (suffix.lower(),)
            yield [stem + other for other in {*same, suffix.upper()} - {suffix}]
        else:
            yield [plain + other for other in SUFFIXES[:USUAL]]
            yield [plain + other for other in SUFFIXES[USUAL:]]


def is_file_name(key: str) -> bool:
    """Whether it can be one, here and in any file we write."""
    try:
        return len(key.encode()) <= LONGEST_PATH and "\0" not in key
    except UnicodeEncodeError:  # bytes of a file system that are no UTF-8
        return False


def escapes(key: str) -> bool:
    """Absolute, or climbing out with '..' (a windows path is judged as one, too)."""
    if ".." not in key and key[:1] not in "/\\" and ":" not in key:
        return False  # nearly always; paths are slow to take apart
    return any(p(key).anchor or ".." in p(key).parts for p in (PurePosixPath, PureWindowsPath))


def contradicts(found: str, wanted: str) -> bool:
    """Whether a file that was found by the end of its path is in 'train' where 'test' was wanted, or the like."""
    here, there = ({SPLITS[part] for part in _folders(path) if part in SPLITS} for path in (found, wanted))
    return bool(here and there and not here & there)


def _folders(path: str) -> list[str]:
    return path.lower().replace("\\", "/").split("/")[:-1]


def why_missing(root: Path, key: str) -> str:
    path = f"{root}/{key}"
    if "://" in key:
        return f"{key!r} is an address, and images are not fetched; download it first"
    if os.path.isdir(path):
        return f"{key!r} is a folder, not an image"
    if os.path.islink(path):
        return f"{key!r} is a link that leads nowhere or to itself"
    stem = os.path.splitext(key)[0] if is_image_name(key) else key
    others = [stem + suffix for suffix in SUFFIXES if os.path.isfile(f"{root}/{stem}{suffix}")]
    return f"{key!r} is not there" + (f", but {' and '.join(others[:2])} is" if others else "")

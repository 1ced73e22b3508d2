"""A name in a label file → the image that is here, and which names are allowed to say so. Nothing is fetched."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import parse_qs, unquote, urlsplit

from manylabel.config import DataConfig
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.data.walk import IMAGE_SUFFIXES, ImageIndex, is_image_name
from manylabel.error import DataError, DecodeError

LONGEST_PATH = 4000
SAMPLE = 50  # names looked at to find the folder of the images
USUAL = 6
SUFFIXES = [case for suffix in sorted(IMAGE_SUFFIXES) for case in (suffix, suffix.upper())]
SUFFIXES.sort(key=lambda suffix: suffix.lower() not in (".jpg", ".png", ".jpeg"))  # the usual ones first
BYTES = "surrogateescape"  # %e9 may stand for a byte of a file name that is not UTF-8
UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio puts it before the name of an uploaded file


def named_root(config: DataConfig) -> Path | None:
    """The folder that data.images names."""
    if config.images is None:
        return None
    root = Path(config.images)
    if not root.is_dir():
        raise DataError(f"data.images: {root} is not a folder")
    return root


def image_root(home: Path, keys: list[str], config: DataConfig, notes: list[str]) -> Path:
    """The folder that file names are relative to: data.images, else `home` or the folder directly inside it that has
    most of these (the first few) files."""
    root = named_root(config)
    if root is None:
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
        self._top = f"{root}/"
        self.taken: dict[str, str] = {}  # files found by the end of a path, and for which name
        self.mended = 0
        self.example = ""

    @cached_property
    def _index(self) -> ImageIndex:
        return ImageIndex(self.root)  # walks the whole folder

    def find(self, name: str) -> str | None:
        """The file's path under the root; None if there is no such file."""
        if "./" in name or "//" in name:
            name = posixpath.normpath(name)  # or one image could stand in two parts under two names
        if os.path.isfile(self._top + name):
            return name
        for others in self._variants(name):
            found = [other for other in others if os.path.isfile(self._top + other)]
            if found:  # several: a photo and its mask, perhaps; nobody can tell which is meant
                return self._note(name, found[0]) if len(found) == 1 else None
        return None

    def find_by_end(self, name: str) -> str | None:
        """For a path of another machine or an address: the one file whose path ends like it."""
        inside = os.path.relpath(os.path.join(self.root, name), self.root)
        if not escapes(inside) and os.path.isfile(self._top + inside):
            return self._note(name, inside)
        if ".." in name.replace("\\", "/").split("/"):
            return None
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


class ImageNames:
    """Finds images under data.images, else under `home`, by the end of the name that a tool gave them (an address, an
    upload, a path elsewhere). How many were found in another place than the one that was named is said in `notes`."""

    def __init__(self, home: Path, config: DataConfig, notes: list[str]) -> None:
        self.root = home if config.images is None else image_root(home, [], config, notes)
        self.source = FileSource(self.root)
        self._taken: dict[str, tuple[str, ...]] = {}  # key → the names that it was found for
        self._notes = notes
        self._note = ""
        self._mended: dict[tuple[str, ...], str] = {}  # names → the key that was found; records are read more than once

    @cached_property
    def _index(self) -> ImageIndex:
        return ImageIndex(self.root)  # walks the whole folder, so only once a name is not where it says

    @cached_property
    def _folders(self) -> set[str]:
        """Names of the folders that hold images."""
        return {_parent(key) for key in self._index.keys} - {""}

    def key(self, *names: str) -> str:
        """The key of the first of these names that is there; the first name itself if none is."""
        for name in names:
            if name and is_file_name(name) and not escapes(name) and os.path.isfile(self.root / name):
                self._taken[name] = names
                return name
        for name in names:
            found = self._index.find(name) if name else None
            if found is None or self._is_another(found, name) or any(contradicts(found, other) for other in names):
                continue
            # a/1.jpg and b/1.jpg are two images: the file that is here can be only one of them
            if self._taken.setdefault(found, names) == names:
                self._tell(names, found)
                return found
        return names[0].lstrip("/")

    def _is_another(self, found: str, wanted: str) -> bool:
        """Whether dogs/1.jpg was found for cats/1.jpg, and there is a folder cats, which just does not have it."""
        folder = _parent(wanted)
        return bool(folder) and folder != _parent(found) and folder in self._folders

    def _tell(self, names: tuple[str, ...], found: str) -> None:
        """Keep one note up to date."""
        if self._mended.setdefault(names, found) and self._note in self._notes:
            self._notes.remove(self._note)
        first, its = next(iter(self._mended.items()))
        self._note = f"{len(self._mended)} names of images are not quite those of the files: {first[0]!r} is {its!r}"
        self._notes.append(self._note)

    def size(self, key: str) -> tuple[int, int] | None:
        """(width, height) from the header of the image; None if it cannot be read."""
        try:
            return self.source.describe(key)
        except (DecodeError, OSError, ValueError):
            return None


def names_of(address: str) -> tuple[str, ...]:
    """What the file behind an address may be called here, the likeliest first."""
    try:
        parts = urlsplit(address)
        local = parse_qs(parts.query, errors=BYTES).get("d", []) if "local-files" in parts.path else []
    except ValueError:  # looks like an address but is none
        return (address,)
    if local:
        return (local[0],)
    path = unquote(parts.path, errors=BYTES).lstrip("/") if parts.scheme and "://" in address else address
    folder, slash, name = path.rpartition("/")
    names = [path, unquote(path, errors=BYTES)]
    if UPLOAD_PREFIX.match(name):
        names += [folder + slash + UPLOAD_PREFIX.sub("", name), UPLOAD_PREFIX.sub("", unquote(name, errors=BYTES))]
    return tuple(dict.fromkeys(names))


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


def _parent(path: str) -> str:
    """The name of the folder that a file is in; '' where the path does not say."""
    folder = path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2]
    return "" if folder in (".", "..") else folder


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

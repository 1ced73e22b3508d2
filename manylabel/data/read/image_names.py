"""From the name an annotation tool gave an image (an address, an upload, a path elsewhere) to the file that is here."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from manylabel.config import DataConfig
from manylabel.data.read.places import contradicts, escapes, image_root, is_file_name
from manylabel.data.source import FileSource
from manylabel.data.walk import ImageIndex
from manylabel.error import DecodeError

BYTES = "surrogateescape"  # %e9 may stand for a byte of a file name that is not UTF-8
UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio puts it before the name of an uploaded file


class ImageNames:
    """Finds images under data.images, else under `home`, by the end of their path. Nothing is fetched.

    How many were found in another place than the one that was named is said in `notes`.
    """

    def __init__(self, home: Path, config: DataConfig, notes: list[str]) -> None:
        self.root = home if config.images is None else image_root(home, [], config, notes)
        self.source = FileSource(self.root)
        self._taken: dict[str, int] = {}  # key → hash of the names that it was found for
        self._notes = notes
        self._note = ""
        self._mended: set[int] = set()  # hashes of names
        self._example = ""

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
                self._taken[name] = hash(names)
                return name
        for name in names:
            found = self._index.find(name) if name else None
            if found is None or self._is_another(found, name) or any(contradicts(found, other) for other in names):
                continue
            # a/1.jpg and b/1.jpg are two images: the file that is here can be only one of them
            if self._taken.setdefault(found, hash(names)) == hash(names):
                self._tell(names, found)
                return found
        return names[0].lstrip("/")

    def _is_another(self, found: str, wanted: str) -> bool:
        """Whether dogs/1.jpg was found for cats/1.jpg, and there is a folder cats, which just does not have it."""
        folder = _parent(wanted)
        return bool(folder) and folder != _parent(found) and folder in self._folders

    def _tell(self, names: tuple[str, ...], found: str) -> None:
        """Keep one note up to date; records are read more than once, and an image counts once."""
        if hash(names) in self._mended:
            return
        self._mended.add(hash(names))
        self._example = self._example or f"{names[0]!r} is {found!r}"
        before = self._note
        self._note = f"{len(self._mended)} names of images are not quite those of the files: {self._example}"
        if before in self._notes:
            self._notes[self._notes.index(before)] = self._note
        else:
            self._notes.append(self._note)

    def size(self, key: str) -> tuple[int, int] | None:
        """(width, height) from the header of the image; None if it cannot be read."""
        try:
            return self.source.describe(key)
        except (DecodeError, OSError, ValueError):
            return None


def _parent(path: str) -> str:
    """The name of the folder that a file is in; '' where the path does not say."""
    folders = path.replace("\\", "/").split("/")[:-1]
    return folders[-1] if folders and folders[-1] not in (".", "..") else ""


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

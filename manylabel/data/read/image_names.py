"""From the name an annotation tool gave an image (an address, an upload, a path elsewhere) to the file that is here."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from manylabel.config import DataConfig
from manylabel.data.read.places import escapes, image_root, is_file_name
from manylabel.data.source import FileSource
from manylabel.data.walk import ImageIndex
from manylabel.error import DecodeError

UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio puts it before the name of an uploaded file


class ImageNames:
    """Finds images under data.images, else under `home`, by the end of their path. Nothing is fetched."""

    def __init__(self, home: Path, config: DataConfig, notes: list[str]) -> None:
        self.root = home if config.images is None else image_root(home, [], config, notes)
        self.source = FileSource(self.root)
        self._taken: dict[str, int] = {}  # key → hash of the names that it was found for

    @cached_property
    def _index(self) -> ImageIndex:
        return ImageIndex(self.root)  # walks the whole folder, so only once a name is not where it says

    def key(self, *names: str) -> str:
        """The key of the first of these names that is there; the first name itself if none is."""
        for name in names:
            if name and is_file_name(name) and not escapes(name) and os.path.isfile(self.root / name):
                self._taken[name] = hash(names)
                return name
        for name in names:
            found = self._index.find(name) if name else None
            # a/1.jpg and b/1.jpg are two images: the file that is here can be only one of them
            if found is not None and self._taken.setdefault(found, hash(names)) == hash(names):
                return found
        return names[0].lstrip("/")

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
        local = parse_qs(parts.query).get("d", []) if "local-files" in parts.path else []
    except ValueError:  # looks like an address but is none
        return (address,)
    if local:
        return (local[0],)
    path = unquote(parts.path).lstrip("/") if parts.scheme and "://" in address else address
    folder, slash, name = path.rpartition("/")
    names = [path, unquote(path)]
    if UPLOAD_PREFIX.match(name):
        names += [folder + slash + UPLOAD_PREFIX.sub("", name), UPLOAD_PREFIX.sub("", unquote(name))]
    return tuple(dict.fromkeys(names))

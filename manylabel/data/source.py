"""Where the pixels of a table come from: files on disk, files inside shards, or scenes drawn on the fly."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Protocol

from PIL import Image

from manylabel.data.decode import check_file_size, decode, describe
from manylabel.data.file_stamp import file_stamp
from manylabel.data.scenes import scene_image


class ImageSource(Protocol):
    """Gives the image of a row by its key (a file name, usually)."""

    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        """An upright RGB image whose short side is at least `at_least` if it was; DecodeError if unreadable."""

    def describe(self, key: str) -> tuple[int, int]:
        """(width, height) as read() would give it, from the header; DecodeError if there is none."""

    def stamp(self, key: str) -> str:
        """Text that changes when the image does, found without reading it: what tells that it must be read again."""


# More methods that a source may have:
#   raw(key) -> bytes                     the image as it is stored, where it is stored at all
#   content(key) -> (bytes, int)          a digest of these bytes, and how many there are (data/contents.py)
#   blocks(keys) -> Blocks | None         where the order of reading matters; ask with manylabel.data.shard.blocks


class EncodedSource(ABC):
    """Images that are bytes somewhere; a child says where with `raw`, and gives the `stamp`."""

    @abstractmethod
    def raw(self, key: str) -> bytes:
        """The encoded bytes; DecodeError, which says where they should be, if there are none."""

    @abstractmethod
    def stamp(self, key: str) -> str:
        """Text that changes when the image does."""

    def content(self, key: str) -> tuple[bytes, int]:
        data = self.raw(key)
        return hashlib.blake2b(data, digest_size=16).digest(), len(data)

    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        return decode(self.raw(key), at_least=at_least)

    def describe(self, key: str) -> tuple[int, int]:
        facts = describe(self.raw(key))
        return facts.width, facts.height


@dataclass(frozen=True)
class FileSource:
    """Images are files; a key is a path relative to the root."""

    root: Path

    def path(self, key: str) -> Path:
        return self.root / key

    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        return decode(self.path(key), at_least=at_least)

    def describe(self, key: str) -> tuple[int, int]:
        facts = describe(self.path(key))
        return facts.width, facts.height

    def raw(self, key: str) -> bytes:
        """The encoded bytes; OSError if the file cannot be read."""
        return self._regular(key).read_bytes()

    def content(self, key: str) -> tuple[bytes, int]:
        with open(self._regular(key), "rb") as file:
            check_file_size(os.fstat(file.fileno()).st_size)
            found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()
            return found, file.tell()

    def stamp(self, key: str) -> str:
        return file_stamp(os.path.join(self.root, key))

    def _regular(self, key: str) -> Path:
        path = self.path(key)
        if not path.is_file():  # opening a pipe would wait for ever
            raise FileNotFoundError(ENOENT, "not a regular file", str(path))
        return path


@dataclass(frozen=True)
class SceneSource:
    """Images are drawn when asked for; a key is 'scene-000017'."""

    seed: int
    size: int

    @staticmethod
    def key(index: int) -> str:
        return f"scene-{index:06d}"

    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        return Image.fromarray(scene_image(self.seed, int(key.rpartition("-")[2]), self.size))

    def describe(self, key: str) -> tuple[int, int]:
        return self.size, self.size

    def stamp(self, key: str) -> str:
        return f"{key}|scenes|{self.seed}|{self.size}"

"""Where the pixels of a table come from: files on disk, or scenes drawn on the fly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PIL import Image

from manylabel.data.decode import decode, describe
from manylabel.data.scenes import scene_image


class ImageSource(Protocol):
    """Gives the image of a row by its key (a file name, usually)."""

    def read(self, key: str, at_least: int | None = None) -> Image.Image:
        """An upright RGB image whose short side is at least `at_least` if it was; DecodeError if unreadable."""

    def describe(self, key: str) -> tuple[int, int]:
        """(width, height) as read() would give it, from the header; DecodeError if there is none."""

    def stamp(self, key: str) -> str:
        """Text that changes when the image does: what the feature cache trusts."""


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

    def stamp(self, key: str) -> str:
        try:
            facts = self.path(key).stat()
        except OSError:
            return f"{key}|missing"
        return f"{self.root.resolve()}|{key}|{facts.st_size}|{facts.st_mtime_ns}"


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

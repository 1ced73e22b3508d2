"""Image files in a folder and all folders inside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from manylabel.error import DataError

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".jp2", ".ppm"}
IMAGE_SUFFIXES |= {".heic", ".heif"}  # not read, but then it is said
NOT_OURS = {"__MACOSX", "@eaDir"}  # what archives and network drives put between the folders


def is_image_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def is_folder(entry: os.DirEntry[str]) -> bool:
    """A folder or a link to one, also where a link leads to itself; asks the disk only about links."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def walk_images(root: Path) -> Iterator[str]:
    """Paths relative to `root` with forward slashes, sorted within each folder; what is hidden is left out.

    Links to folders are followed, but no folder is entered twice, so a link that leads back ends there.
    """
    entered: set[tuple[int, int]] = set()
    waiting = [""]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(root / here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            facts = os.stat(root / here)
        except OSError as error:
            raise DataError(f"cannot look into the folder {root / here}: {error.strerror}") from error
        if (facts.st_dev, facts.st_ino) in entered:
            continue
        entered.add((facts.st_dev, facts.st_ino))
        folders = []
        for entry in found:
            try:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            except OSError:  # a link that leads to itself
                continue
            if entry.name.startswith(".") or entry.name in NOT_OURS:
                continue
            if is_folder:
                folders.append(f"{here}{entry.name}/")
            elif is_file and is_image_name(entry.name):
                yield here + entry.name
        waiting += reversed(folders)


def is_among_images(folder: Path, data: Path) -> bool:
    """Whether this folder lies in the data's and holds images: no place to write into."""
    place, home = folder.resolve(), data if data.is_dir() else data.parent
    return place.is_relative_to(home.resolve()) and place.is_dir() and next(walk_images(place), None) is not None


class ImageIndex:
    """The images under a folder, found by any end of their path: 'b/c.jpg' and 'c.jpg' both find 'a/b/c.jpg'."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.keys = list(walk_images(root))
        self._by_name: dict[str, list[str]] = {}
        for key in self.keys:
            self._by_name.setdefault(key.rpartition("/")[2], []).append(key)
            self._by_name.setdefault(os.path.splitext(key.rpartition("/")[2])[0], []).append(key)

    def find(self, name: str) -> str | None:
        """The key whose path ends most like `name` (with or without its suffix); None if there is none or a tie."""
        wanted = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if not wanted:
            return None
        found = self._by_name.get(wanted[-1], [])
        if len(found) < 2:
            return found[0] if found else None
        ranked = sorted(((_shared(key, wanted), key) for key in found), reverse=True)
        return None if ranked[0][0] == ranked[1][0] else ranked[0][1]


def _shared(key: str, wanted: list[str]) -> int:
    """How many folders above the file are the same."""
    count = 0
    for a, b in zip(reversed(key.split("/")[:-1]), reversed(wanted[:-1]), strict=False):
        if a != b:
            break
        count += 1
    return count

"""The images of YOLO data and the label file of each: in a folder labels/ parallel to images/, or beside the image."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from manylabel.data.finder import ImageNames, escapes
from manylabel.data.read.text_file import text_lines
from manylabel.data.read.yolo_parts import NAMES_FILES, Part, below
from manylabel.data.walk import walk_images
from manylabel.error import DataError

IMAGE_FOLDERS = ("images", "jpegimages")  # the last such folder of a path has its labels in labels/
FEWEST_WORDS = 5  # of a line: class and box


@dataclass(frozen=True)
class Entry:
    """One image."""

    key: str
    split: str | None
    where: str
    labels: Path | None  # its label file; None = it has none, so nothing is on it


class LabelFolders:
    """Finds label files; `home` is the folder of the data, `root` the one that keys are relative to."""

    def __init__(self, home: Path, root: Path) -> None:
        self.home = home
        self.root = root
        self._known: dict[str, Path | None] = {}  # folder of images → folder of their labels

    def file(self, key: str) -> Path | None:
        """The label file of an image."""
        folder, _, name = key.rpartition("/")
        place = self.folder(folder)
        if place is None:
            return None
        file = place / f"{os.path.splitext(name)[0]}.txt"
        if os.path.isfile(file):
            return file
        if os.path.lexists(file):
            raise DataError(f"{file} is no file but a folder or a link that leads nowhere; mend or delete it")
        return None

    def folder(self, images: str) -> Path | None:
        """The folder with the labels of the images in a folder."""
        if images not in self._known:
            self._known[images] = next((place for place in self._places(images) if any(label_names(place))), None)
        return self._known[images]

    def files(self, images: str) -> list[Path]:
        """All files that can be about an image in a folder."""
        place = self.folder(images)
        return [] if place is None else [place / name for name in sorted(label_names(place))]

    def _places(self, images: str) -> Iterator[Path]:
        other = _swapped(images)
        if escapes(images):
            if os.path.isabs(images):  # the user named a folder of images, and these are outside of it
                yield from (Path(way) for way in (other, images) if way)
            return
        ways = [way for way in (other, images, posixpath.join("labels", images)) if way is not None]
        for base in dict.fromkeys((self.root, self.home)):
            yield from (base / way for way in ways)
        if self.root != self.home and (beside := _swapped(f"{self.root.as_posix()}/{images}")):
            yield Path(beside)

    def shown(self, file: Path) -> str:
        """For messages: 'labels/train/a.txt'."""
        inside = below(file, self.home)
        return str(file) if inside is None else inside


def _swapped(folder: str) -> str | None:
    """'images/train' → 'labels/train'; None where no part of the path is a folder for images."""
    parts = folder.split("/")
    for i in range(len(parts) - 1, -1, -1):
        if parts[i].lower() in IMAGE_FOLDERS:
            return "/".join([*parts[:i], "labels", *parts[i + 1 :]])
    return None


def label_names(folder: Path) -> Iterator[str]:
    """Names of the text files in a folder that can be about an image; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name.lower()
                if name.endswith(".txt") and name not in NAMES_FILES and not name.startswith(("readme", ".")):
                    yield entry.name
    except (OSError, ValueError):
        return


def entries(parts: Iterable[Part], images: ImageNames, labels: LabelFolders) -> Iterator[Entry]:
    """All images in their order, and those that are gone but have a label file."""
    for part in parts:
        yield from _in_folder(part, images, labels) if part.place.is_dir() else _in_list(part, images, labels)


def _in_folder(part: Part, images: ImageNames, labels: LabelFolders) -> Iterator[Entry]:
    inside = below(part.place, images.root)
    start = part.place.as_posix() if inside is None else inside
    keys = (posixpath.join(start, name) for name in walk_images(part.place))
    for folder, together in groupby(keys, key=lambda key: key.rpartition("/")[0]):
        stems = set()
        for key in together:
            stems.add(os.path.splitext(key.rpartition("/")[2])[0])
            file = labels.file(key)
            yield Entry(key, part.split, key if file is None else labels.shown(file), file)
        for file in labels.files(folder):
            if file.stem not in stems and holds_objects(file):
                yield Entry(posixpath.join(folder, f"{file.stem}.jpg"), part.split, labels.shown(file), file)


def _in_list(part: Part, images: ImageNames, labels: LabelFolders) -> Iterator[Entry]:
    folder = below(part.place.parent, images.root) or ""
    for number, line in enumerate(text_lines(part.place), 1):
        name = line.strip().replace("\\", "/")
        if not name:
            continue
        key = images.key(posixpath.normpath(posixpath.join(folder, name)), posixpath.normpath(name))
        file = None if escapes(key) else labels.file(key)
        beside = "" if file is None else f" ({labels.shown(file)})"
        yield Entry(key, part.split, f"{part.place.name}, row {number}{beside}", file)


def holds_objects(file: Path) -> bool:
    """Whether its first line looks like a class and a shape; never an error."""
    try:
        line = next((line for line in text_lines(file) if line.strip()), "")
        return len([float(word) for word in line.split()]) >= FEWEST_WORDS
    except (DataError, ValueError):
        return False

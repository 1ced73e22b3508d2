"""The images of YOLO data: which folders and lists hold them, which split each of these is, and the label file of each
image, in a folder labels/ parallel to images/ or beside the image."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.finder import ImageNames, escapes, is_file_name
from manylabel.data.read.split_name import split_of
from manylabel.data.read.text_file import text_lines
from manylabel.data.read.yolo_yaml import DataYaml
from manylabel.data.table import SPLITS
from manylabel.data.walk import is_folder, is_image_name, walk_images
from manylabel.error import DataError

NAMES_FILES = ("classes.txt", "obj.names", "_darknet.labels")  # one class a line, in the order of their numbers
IMAGE_FOLDERS = ("images", "jpegimages")  # the last such folder of a path has its labels in labels/
FEWEST_WORDS = 5  # of a line: class and box


@dataclass(frozen=True)
class Part:
    """Images that lie or stand together."""

    place: Path  # a folder, or a .txt file that lists images
    split: str | None = None


# --- with a data.yaml -------------------------------------------------------------------------------------------


def yaml_parts(data: DataYaml, root: Path, config: DataConfig, notes: list[str]) -> list[Part]:
    """What the sets of a data.yaml are on this machine: its paths often are those of another one."""
    parts: list[Part] = []
    seen: list[set[Path]] = []
    moved = []
    for split, written in data.sets.items():
        places = []
        for text in written:
            place = _place(text, data, root, config.images is not None)
            if place is not None:
                places.append(place)
                if os.path.abspath(place) != os.path.abspath(data.file.parent / data.top / text):
                    moved.append(f"{split} is {shown(place, root) or '.'}")
            elif split == "test" or config.missing == "drop":
                notes.append(f"{data.file.name}: {text!r} of {split} is not there and left out")
            else:
                raise DataError(
                    f"{data.file}: {split} is {text!r}, which is not below {root}; mend it, or say where the images are "
                    "with --set data.images=FOLDER"
                )
        if places and set(places) in seen:
            notes.append(f"{split} of {data.file.name} has the same images as another split and is left out")
            continue
        seen.append(set(places))
        parts += [Part(place, split) for place in dict.fromkeys(places)]
    if moved:
        notes.append(f"paths of {data.file.name} are not valid here; below {root.name or root}, {', '.join(moved)}")
    return _with_splits(parts)


def _place(written: str, data: DataYaml, root: Path, anywhere: bool) -> Path | None:
    """The folder or list that a path means: as it is written, else the longest end of it that is below the root.

    Only where the user named a folder of images (`anywhere`) may it lead out of the root.
    """
    home = data.file.parent
    exact = [home / data.top / written, home / written]
    ends = list(_ends(data.top, written, root))
    for place in [*ends, *exact] if anywhere else [*exact, *ends]:
        if not is_file_name(str(place)) or not (
            os.path.isdir(place) or (place.suffix.lower() == ".txt" and os.path.isfile(place))
        ):
            continue
        inside = below(place, root)
        if inside is not None:
            return root / inside
        if anywhere:
            return Path(os.path.abspath(place))
    return None


def _ends(top: str, written: str, root: Path) -> Iterator[Path]:
    text = written.replace("\\", "/")
    whole = text if text.startswith("/") else f"{top}/{text}".replace("\\", "/")
    parts = [part for part in whole.split("/") if part not in ("", ".", "..")]
    for first in range(len(parts)):
        yield root.joinpath(*parts[first:])


def below(path: Path, root: Path) -> str | None:
    """The path relative to the root with forward slashes ('' = the root itself); None if it leads out of it."""
    try:
        inside = os.path.relpath(os.path.abspath(path), os.path.abspath(root)).replace(os.sep, "/")
    except ValueError:  # another drive
        return None
    return None if inside.split("/")[0] == ".." else "" if inside == "." else inside


def shown(place: Path, root: Path) -> str:
    """For messages: 'labels/train/a.txt'."""
    inside = below(place, root)
    return str(place) if inside is None else inside


# --- without ----------------------------------------------------------------------------------------------------


def plain_parts(home: Path, root: Path) -> list[Part]:
    """train.txt and its like, else folders that are named as splits, else all images there are."""
    lists = [Part(file, SPLITS[name]) for name in SPLITS for file in _lists(home, name)]
    if lists:
        return _with_splits(lists)
    base = root / "images" if (root / "images").is_dir() else root
    with os.scandir(base) as entries:
        seen = {entry.name: is_folder(entry) for entry in entries if entry.name[0] != "." and entry.name != "labels"}
    if any(is_image_name(name) for name, inside in seen.items() if not inside):
        return [Part(base)]
    folders = [base / name for name in sorted(name for name, inside in seen.items() if inside)]
    folders = [folder for folder in folders if next(walk_images(folder), None) is not None]
    if not folders or not all(map(split_of, folders)):
        return [Part(base)]
    return _with_splits([Part(folder, split_of(folder)) for folder in folders])


def names_files(home: Path) -> list[Path]:
    """The files with the names of the classes, in all places where tools put them."""
    splits = split_folders(home)
    inner = [f"labels/{name}" for name in split_folders(home / "labels")]
    places = ["", "labels", "data", *inner, *splits, *(f"{name}/labels" for name in splits)]
    return [file for place in places for name in NAMES_FILES if (file := home / place / name).is_file()]


def read_names(files: list[Path], home: Path) -> dict[int, str]:
    """Number of a class → its name; several files must say the same."""
    found = [_lines(file) for file in files]
    for file, lines in zip(files, found, strict=True):
        if lines != found[0]:
            raise DataError(
                f"{below(file, home)} and {below(files[0], home)} in {home} name other classes or in another order; "
                "make them alike, and mend the label files that go by the wrong one"
            )
    names = {number: line for number, line in enumerate(found[0]) if line}
    if not names:
        raise DataError(f"{files[0]} is empty; write the names of the classes in it, one a line")
    return names


def _lines(file: Path) -> list[str]:
    lines = [line.strip() for line in text_lines(file)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def split_folders(folder: Path) -> list[str]:
    """Names of the folders inside that are named as splits; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if is_folder(entry) and split_of(Path(entry.name)))
    except OSError:
        return []


def _lists(home: Path, name: str) -> list[Path]:
    """Lists of images of this name, at the top or where darknet has them."""
    files = [home / f"{name}.txt", home / "data" / f"{name}.txt"]
    return [file for file in files if file.is_file() and is_image_name(next(text_lines(file), "").strip())]


def _with_splits(parts: list[Part]) -> list[Part]:
    """Where nothing is held out, there is no split."""
    return parts if len({part.split for part in parts}) > 1 else [replace(part, split=None) for part in parts]


# --- the images of a part, and their label files ----------------------------------------------------------------------


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
        return shown(file, self.home)


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

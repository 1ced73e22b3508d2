"""Open Images: class descriptions, image labels that people verified, and boxes.

A label that people verified as absent is absent; what nobody verified is unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from manylabel.config import DataConfig
from manylabel.console import counting
from manylabel.data.read.folder_entry import is_folder
from manylabel.data.read.format import Format
from manylabel.data.read.open_images_classes import Classes
from manylabel.data.read.open_images_rows import (
    ABSENT_BIT,
    BITS,
    BOX_BIT,
    BOX_COLUMNS,
    IMAGE,
    LABEL_COLUMNS,
    PRESENT_BIT,
    Answers,
    Boxes,
    rows_at_hand,
)
from manylabel.data.read.places import image_root
from manylabel.data.record import Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.data.walk import walk_images
from manylabel.error import DataError, DecodeError
from manylabel.labels import UNKNOWN

MOST_FOLDERS = 50  # with more inside it, a folder is no Open Images and need not be searched


@dataclass
class _Files:
    """The files of the data set by what they hold."""

    home: Path
    classes: list[Path] = field(default_factory=list)
    labels: list[Path] = field(default_factory=list)
    boxes: list[Path] = field(default_factory=list)
    trainable: list[Path] = field(default_factory=list)
    machine: list[Path] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)  # notes about files that are not read

    @classmethod
    def of(cls, path: Path) -> _Files:
        """Those in a folder and the folders directly inside it; of a single label file, those beside it."""
        files = cls(path if path.is_dir() else path.parent)
        for found in _listed(files.home):
            files._sort_in(found)
        if not path.is_dir():
            files.labels, files.boxes = [path], []
        # the full list of classes before that of the boxable ones, new versions before old
        files.classes.sort(key=lambda found: ("boxable" not in found.name, found.name), reverse=True)
        return files

    def _sort_in(self, path: Path) -> None:
        name = path.name.lower()
        if name.endswith("classes-trainable.txt"):
            self.trainable.append(path)
        elif "hierarchy" in name and name.endswith(".json"):
            self.ignored.append(f"{path.name} is not used; give parents of labels with data.labels")
        elif name.endswith(".csv"):
            if "class-descriptions" in name:
                self.classes.append(path)
            elif "machine-imagelabels" in name:
                self.machine.append(path)
            elif "annotations-human-imagelabels" in name:
                self.labels.append(path)
            elif "annotations-bbox" in name:
                self.boxes.append(path)

    def split(self, path: Path) -> str | None:
        """What a file's name says, else its folder: 'oidv6-train-annotations-….csv' is of train."""
        words = re.split("[^a-z]+", path.name.lower())
        if path.parent != self.home:  # the whole data set may lie in a folder called 'test'
            words.append(path.parent.name.lower())
        return next((SPLITS[word] for word in words if word in SPLITS), None)


def _listed(folder: Path) -> list[Path]:
    """CSV, text and JSON files, sorted, without a look at each of what may be a million images."""
    with os.scandir(folder) as entries:
        inside = [entry.name for entry in entries if is_folder(entry)]
    folders = [folder, *(folder / name for name in sorted(inside))] if len(inside) <= MOST_FOLDERS else [folder]
    return [
        below / name
        for below in folders
        for name in sorted(name for name in os.listdir(below) if name.lower().endswith((".csv", ".txt", ".json")))
    ]


class _Images:
    """The image files at hand, numbered; and which label file spoke of each first."""

    def __init__(self, root: Path, files: _Files) -> None:
        self.files = files
        self.splits = {path: files.split(path) for path in files.labels + files.boxes}
        self.keys = list(walk_images(root))
        self.number: dict[str, int] = {}
        self.twice: dict[int, str] = {}  # a second file with the same id
        for i, key in enumerate(self.keys):
            first = self.number.setdefault(PurePosixPath(key).stem, i)
            if first != i:
                self.twice[first] = key
        self.file: list[Path | None] = [None] * len(self.keys)

    def spoken_of(self, image: int, path: Path) -> None:
        """Notes the file; an image in files of two splits, or that lies in two places, is refused."""
        if self.file[image] is None:
            if image in self.twice:
                raise DataError(f"{self.keys[image]} and {self.twice[image]} have the same ImageID; delete one of them")
            self.file[image] = path
        elif (other := self.file[image]) not in (None, path) and self.splits[other] != self.splits[path]:
            raise DataError(
                f"{path.name}: ImageID {PurePosixPath(self.keys[image]).stem} also stands in {other.name}, which is of "
                "another split; delete its rows in one of them"
            )

    def split(self, image: int) -> str | None:
        """By the name of the label file, else by the folder of the image."""
        path = self.file[image]
        assert path is not None
        folders = PurePosixPath(self.keys[image]).parts[:-1]
        return self.splits[path] or next((name for name in folders if name.lower() in SPLITS), None)


class _Content:
    """Everything the files say about the images at hand."""

    def __init__(self, classes: Classes, images: _Images, config: DataConfig) -> None:
        self.images, self.classes, files = images, classes, images.files
        self.answers, self.boxes = Answers(config.machine_labels), Boxes(config.boxes == "clip")
        with counting("reading label files", len(files.labels) + len(files.boxes)) as advance:
            for path in files.labels:
                self._read_labels(path)
                advance(1)
            for path in files.boxes:
                self._read_boxes(path)
                advance(1)
        self.packed = self.answers.sorted()
        numbers = np.arange(len(images.keys) + 1)
        self.starts = np.searchsorted(self.packed, numbers.astype(np.uint64) << np.uint64(IMAGE))
        self.box_image, self.box_label, self.corners, self.crowd = self.boxes.columns()
        self.box_starts = np.searchsorted(self.box_image, numbers)

    def _read_labels(self, path: Path) -> None:
        for line, image, at, row in rows_at_hand(path, self.images.number, LABEL_COLUMNS):
            label = self.classes.label(row[at["LabelName"]], path, line)
            if label is None:
                continue
            where = f"{path.name}, row {line}"
            if bit := self.answers.read_label(where, row[at["Source"]], row[at["Confidence"]].strip()):
                self.images.spoken_of(image, path)
                self.answers.add(image, label, bit)

    def _read_boxes(self, path: Path) -> None:
        for line, image, at, row in rows_at_hand(path, self.images.number, BOX_COLUMNS):
            label = self.classes.label(row[at["LabelName"]], path, line)
            if label is not None:
                self.images.spoken_of(image, path)
                self.answers.add(image, label, BOX_BIT)
                self.boxes.add(f"{path.name}, row {line}", image, label, row, at)

    def of(self, image: int) -> dict[int, int]:
        """label → bits"""
        return Answers.unpack(self.packed[self.starts[image] : self.starts[image + 1]])

    def notes(self) -> list[str]:
        found = []
        if self.answers.machine:
            less = "" if self.answers.sure is None else f" with less confidence than {self.answers.sure:g}"
            found.append(f"{self.answers.machine} rows with labels that a machine made{less} are not used")
        if self.boxes.empty:
            found.append(f"{self.boxes.empty} boxes without area are left out; their labels are kept")
        pair = self.packed >> np.uint64(BITS)
        bit = self.packed & np.uint64((1 << BITS) - 1)
        both = pair[:-1][(pair[:-1] == pair[1:]) & (bit[:-1] == ABSENT_BIT) & (bit[1:] == PRESENT_BIT)]
        undecided = int(np.isin(both, pair[bit == BOX_BIT], invert=True).sum())
        if undecided:
            found.append(f"{undecided} labels were verified as present and as absent; they count as unknown")
        silent = sum(path is None for path in self.images.file)
        if silent:
            found.append(
                f"{silent} images without a {'verified ' if self.answers.sure is None else ''}label are left out"
            )
        return found


def open_open_images(path: Path, config: DataConfig) -> Reading:
    """A folder with class descriptions, label files and <ImageID>.jpg files in it or in folders inside it."""
    files = _Files.of(path)
    notes: list[str] = []
    if not files.classes:
        raise DataError(f"{path}: no class-descriptions.csv; fetch it from the same version of Open Images")
    if not files.labels and not files.boxes:
        raise DataError(f"{path}: no *-annotations-human-imagelabels.csv and no *-annotations-bbox.csv; fetch them")
    source = FileSource(image_root(files.home, [], config, notes))
    notes += files.ignored
    if config.machine_labels is None:
        notes += [f"{found.name} holds labels that a machine made; they are not used" for found in files.machine]
    else:
        files.labels += files.machine
    classes = Classes.read(files.classes, files.trainable[-1] if files.trainable else None, notes)
    images = _Images(source.root, files)
    content = _Content(classes, images, config)
    total = sum(found is not None for found in images.file)
    if not total:
        raise DataError(
            f"{source.root} holds {len(images.keys)} images, none of which has a label in "
            f"{', '.join(found.name for found in files.labels + files.boxes)}; images are called <ImageID>.jpg, "
            "say where they are with --set data.images=FOLDER"
        )
    notes += content.notes()
    names = tuple(classes.names.values())
    sizes: dict[int, tuple[int, int] | None] = {}

    def records() -> Iterator[Record]:
        for image, spoken_of in enumerate(images.file):
            if spoken_of is not None:
                things, size = _things(content, source, image, names, sizes)
                yield _record(content, image, spoken_of, names, things, size)
        unreadable = sum(size is None for size in sizes.values())
        note = f"the boxes of {unreadable} images that cannot be read are left out"
        if unreadable and note not in notes:
            notes.append(note)

    labels = names if classes.closed else None
    return Reading("open-images", path, source, records, labels=labels, rest=UNKNOWN, total=total, notes=notes)


def _record(
    content: _Content,
    image: int,
    path: Path,
    names: tuple[str, ...],
    things: tuple[Thing, ...],
    size: tuple[int, int] | None,
) -> Record:
    bits = content.of(image)
    key = content.images.keys[image]
    return Record(
        key=key,
        where=f"{path.name}, ImageID {PurePosixPath(key).stem}",
        present=tuple(names[label] for label, bit in bits.items() if Answers.says(bit)),
        absent=tuple(names[label] for label, bit in bits.items() if Answers.says(bit) is False),
        split=content.images.split(image),
        things=things,
        size=size,
    )


def _things(
    content: _Content,
    source: FileSource,
    image: int,
    names: tuple[str, ...],
    sizes: dict[int, tuple[int, int] | None],
) -> tuple[tuple[Thing, ...], tuple[int, int] | None]:
    """The boxes in pixels and the size of the image, which is looked up once and only where there are boxes."""
    entries = range(content.box_starts[image], content.box_starts[image + 1])
    if not entries:
        return (), None
    if image not in sizes:
        try:
            sizes[image] = source.describe(content.images.keys[image])
        except DecodeError:  # such images are dropped later, with their reason
            sizes[image] = None
    size = sizes[image]
    if size is None:
        return (), None
    things = []
    for entry in entries:
        left, top, right, bottom = (content.corners[entry] * np.array(size * 2, np.float32)).tolist()
        label = names[content.box_label[entry]]
        things.append(Thing(label, (left, top, right, bottom), crowd=bool(content.crowd[entry])))
    return tuple(things), size


def _sniff(path: Path) -> str:
    try:
        if path.is_dir() or ("annotations-human-imagelabels" in path.name.lower() and path.suffix.lower() == ".csv"):
            files = _Files.of(path)
        else:
            return ""
    except OSError:
        return ""
    spoken = files.labels or files.boxes
    return f"{files.classes[0].name} and {spoken[0].name}" if files.classes and spoken else ""


FORMAT = Format("open-images", "Open Images", _sniff, open_open_images)

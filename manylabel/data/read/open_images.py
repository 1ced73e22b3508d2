"""Open Images: class descriptions, image labels that people verified, and boxes.

A label that people verified as absent is absent; what nobody verified is unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from manylabel.config import DataConfig
from manylabel.console import counting
from manylabel.data.finder import image_root
from manylabel.data.read.open_images_classes import Classes
from manylabel.data.read.open_images_rows import (
    BOX_COLUMNS,
    LABEL_COLUMNS,
    NO,
    YES,
    read_answer,
    read_box,
    rows_at_hand,
)
from manylabel.data.record import Box, Format, Reading, Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.table import SPLITS
from manylabel.data.walk import is_folder, walk_images
from manylabel.error import DataError, DecodeError
from manylabel.labels import UNKNOWN

PEOPLE = NO | YES
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
        self.images, self.files, self.sure = images, images.files, config.machine_labels
        self.said: dict[int, dict[int, int]] = {}  # image → label → all that was said of it
        self.boxes: dict[int, list[tuple[int, Box | None, bool]]] = {}  # image → label, box, crowd
        self.machine = 0  # rows left out because no person made them, and no machine was sure enough
        with counting("reading label files", len(self.files.labels) + len(self.files.boxes)) as advance:
            for path in self.files.labels:
                self._read_labels(path, classes)
                advance(1)
            for path in self.files.boxes:
                self._read_boxes(path, classes, config.boxes == "clip")
                advance(1)

    def _read_labels(self, path: Path, classes: Classes) -> None:
        for line, image, at, row in rows_at_hand(path, self.images.number, LABEL_COLUMNS):
            label = classes.label(row[at["LabelName"]], path, line)
            if label is None:
                continue
            where, confidence = f"{path.name}, row {line}", row[at["Confidence"]].strip()
            answer = read_answer(where, row[at["Source"]], confidence, self.sure)
            if not answer:
                self.machine += 1
                continue
            self.images.spoken_of(image, path)
            said = self.said.setdefault(image, {})
            said[label] = said.get(label, 0) | answer

    def _read_boxes(self, path: Path, classes: Classes, clip: bool) -> None:
        for line, image, at, row in rows_at_hand(path, self.images.number, BOX_COLUMNS):
            label = classes.label(row[at["LabelName"]], path, line)
            if label is not None:
                self.images.spoken_of(image, path)
                crowd = "IsGroupOf" in at and row[at["IsGroupOf"]].strip() == "1"
                box = read_box(f"{path.name}, row {line}", row, at, clip)
                self.boxes.setdefault(image, []).append((label, box, crowd))

    def notes(self) -> Iterator[str]:
        if self.machine:
            less = "" if self.sure is None else f" with less confidence than {self.sure:g}"
            yield f"{self.machine} rows with labels that a machine made{less} are not used"
        if empty := sum(box is None for boxes in self.boxes.values() for _, box, _ in boxes):
            yield f"{empty} boxes without area are left out; their labels are kept"
        boxed = {(image, label) for image, boxes in self.boxes.items() for label, _, _ in boxes}
        both = (
            (i, label) for i, said in self.said.items() for label, answers in said.items() if answers & PEOPLE == PEOPLE
        )
        if undecided := sum(pair not in boxed for pair in both):
            yield f"{undecided} labels were verified as present and as absent; they count as unknown"
        if silent := sum(path is None for path in self.images.file):
            verified = "verified " if self.sure is None else ""
            yield f"{silent} images without a {verified}label are left out"

    def record(self, image: int, path: Path, names: tuple[str, ...], source: FileSource) -> Record:
        key, boxes, said = self.images.keys[image], self.boxes.get(image, []), self.said.get(image, {})
        boxed = dict.fromkeys(label for label, _, _ in boxes)
        present = boxed | dict.fromkeys(label for label, answers in said.items() if _is_there(answers))
        size = None
        if any(box is not None for _, box, _ in boxes):
            with suppress(DecodeError):  # such images are dropped later, with their reason
                size = source.describe(key)
        width, height = size or (0, 0)
        return Record(
            key=key,
            where=f"{path.name}, ImageID {PurePosixPath(key).stem}",
            present=tuple(names[label] for label in present),
            absent=tuple(
                names[label] for label, answers in said.items() if answers & PEOPLE == NO and label not in boxed
            ),
            split=self.images.split(image),
            things=tuple(
                Thing(names[label], (box[0] * width, box[1] * height, box[2] * width, box[3] * height), crowd)
                for label, box, crowd in (boxes if size else ())
                if box is not None
            ),
            size=size,
        )


def _is_there(answers: int) -> bool:
    """People before machines; where people disagree, nobody knows."""
    return answers & PEOPLE in (0, YES)


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
    if not any(images.file):
        raise DataError(
            f"{source.root} holds {len(images.keys)} images, none of which has a label in "
            f"{', '.join(found.name for found in files.labels + files.boxes)}; images are called <ImageID>.jpg, "
            "say where they are with --set data.images=FOLDER"
        )
    notes += content.notes()
    names = tuple(classes.names.values())

    def records() -> Iterator[Record]:
        unreadable = 0
        for image, spoken_of in enumerate(images.file):
            if spoken_of is not None:
                yield (record := content.record(image, spoken_of, names, source))
                shown = any(box is not None for _, box, _ in content.boxes.get(image, ()))
                unreadable += shown and record.size is None
        note = f"the boxes of {unreadable} images that cannot be read are left out"
        if unreadable and note not in notes:
            notes.append(note)

    return Reading(path, source, records, names if classes.closed else None, UNKNOWN, notes=notes)


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

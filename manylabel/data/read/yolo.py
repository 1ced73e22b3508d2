"""YOLO folders: a text file per image with a line 'class x y width height' for each object, or with its outline.

As Ultralytics has it (data.yaml, images/ and labels/), as darknet has it (names and text files beside the images), or
bare folders images/ and labels/. An image without a label file shows none of the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.finder import ImageNames
from manylabel.data.read.text_file import text_lines
from manylabel.data.read.yolo_files import (
    Entry,
    LabelFolders,
    Part,
    entries,
    holds_objects,
    names_files,
    plain_parts,
    read_names,
    split_folders,
    yaml_parts,
)
from manylabel.data.read.yolo_line import LineRules, Shape
from manylabel.data.read.yolo_yaml import find_yaml, is_yolo_yaml, read_yaml, yaml_files
from manylabel.data.record import Format, Reading, Record
from manylabel.error import DataError

LARGEST_LABELS = 16 << 20  # bytes
GLANCE = 200  # images of which one has a label file, or this is something else


def read_yolo(path: Path, config: DataConfig) -> Reading:
    """A data.yaml, a folder that holds one, or a folder of images and label files without."""
    home = path if path.is_dir() else path.parent
    file = find_yaml(path)
    if file is None and not path.is_dir():
        raise DataError(f"{path} is no data.yaml of YOLO; name that file, or the folder of the data")
    notes: list[str] = []
    images = ImageNames(home, config, notes)
    if file is not None:
        data = read_yaml(file)
        notes += data.notes
        parts = yaml_parts(data, images.root, config, notes)
        rules = LineRules(data.names, file.name, data.keypoints, clip=config.boxes == "clip")
    else:
        parts = plain_parts(home, images.root)
        found = names_files(home)
        names = read_names(found, home) if found else None
        rules = LineRules(names, found[0].name if found else "", clip=config.boxes == "clip")
    labels = LabelFolders(home, images.root)

    def every() -> Iterator[Entry]:
        return entries(parts, images, labels)

    def records() -> Iterator[Record]:
        count = bare = 0
        for entry in every():
            count += 1
            bare += entry.labels is None
            yield _record(entry, rules, images, labels)
        if count and bare == count:  # a mistake in the layout of the folder
            raise DataError(
                f"{path}: none of the {count} images has a label file; put a.txt for images/train/a.jpg into "
                "labels/train/, or beside the image"
            )
        note = f"{bare} of {count} images have no label file; they show none of the classes"
        if bare and note not in notes:
            notes.append(note)

    return Reading(path, images.source, records, _labels(every, rules, labels, notes), notes=notes)


def _labels(
    every: Callable[[], Iterator[Entry]], rules: LineRules, labels: LabelFolders, notes: list[str]
) -> tuple[str, ...] | None:
    """All classes in the order of their numbers; where nobody named them, the numbers that occur."""
    if rules.names is not None:
        return tuple(rules.names[number] for number in sorted(rules.names))
    notes.append("no data.yaml and no classes.txt: labels are the numbers of the classes, '0', '1', …")
    files = (entry.labels for entry in every() if entry.labels is not None)
    found = {shape.label for file in files for _, shape in _shapes(file, rules, labels.shown(file))}
    return tuple(sorted(found, key=int))


def _record(entry: Entry, rules: LineRules, images: ImageNames, labels: LabelFolders) -> Record:
    shapes = [] if entry.labels is None else list(_shapes(entry.labels, rules, labels.shown(entry.labels)))
    size = images.size(entry.key) if shapes else None  # opens the image
    return Record(
        entry.key,
        entry.where,
        present=tuple(dict.fromkeys(shape.label for _, shape in shapes)),
        split=entry.split,
        things=tuple(shape.thing(size, where) for where, shape in shapes) if size else (),
        size=size,
    )


def _shapes(file: Path, rules: LineRules, name: str) -> Iterator[tuple[str, Shape]]:
    """(place, object) of every line."""
    try:
        too_large = file.stat().st_size > LARGEST_LABELS
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    if too_large:
        raise DataError(f"{file} has more than {LARGEST_LABELS >> 20} MiB; that is no label file of one image")
    for number, line in enumerate(text_lines(file), 1):
        if line.strip():
            where = f"{name}, line {number}"
            yield where, rules.read(line, where)


# --- detection --------------------------------------------------------------------------------------------------


def _sniff(path: Path) -> str:
    try:
        if not path.is_dir():
            return path.name if is_yolo_yaml(path) else ""
        if files := yaml_files(path):
            return files[0].name
        named = names_files(path)
        if not named and not _has_parallel_folders(path):
            return ""
        labels = LabelFolders(path, path)
        images = ImageNames(path, DataConfig(), [])
        for part in plain_parts(path, path):
            if example := _example(part, images, labels, beside=bool(named)):
                return f"{named[0].name} and {example}" if named else example
    except (DataError, OSError):
        pass
    return ""


def _has_parallel_folders(path: Path) -> bool:
    """images/ and labels/, or train/images/ and train/labels/."""
    folders = [path, *(path / name for name in split_folders(path))]
    return any((folder / "labels").is_dir() and (folder / "images").is_dir() for folder in folders)


def _example(part: Part, images: ImageNames, labels: LabelFolders, beside: bool) -> str:
    """'labels/*.txt', if one of the first images has such a file; beside the images only where classes are named."""
    for entry in islice(entries([part], images, labels), GLANCE):
        file = entry.labels
        if file is None or not holds_objects(file):
            continue
        place = labels.shown(file.parent)
        if beside or "labels" in place.split("/"):
            return f"{place}/*.txt".lstrip("/")
    return ""


FORMAT = Format("yolo", "YOLO", _sniff, read_yolo)

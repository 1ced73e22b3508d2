"""NUS-WIDE in its official layout: 81 concepts, one file of 0 and 1 for each, in the order of an image list.

ConceptsList/Concepts81.txt                         names of the concepts
ImageList/{Imagelist,TrainImagelist,TestImagelist}.txt    actor\\0001_2124494179.jpg
Groundtruth/AllLabels/Labels_<concept>.txt          in the order of Imagelist.txt
Groundtruth/TrainTestLabels/Labels_<concept>_{Train,Test}.txt    in the order of the other two
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.finder import image_root
from manylabel.data.read.folder_entry import is_folder
from manylabel.data.read.text_file import text_lines
from manylabel.data.record import Format, Reading, Record
from manylabel.data.source import FileSource
from manylabel.data.walk import ImageIndex
from manylabel.error import DataError
from manylabel.labels import label_key

PLACES = {"conceptslist", "imagelist", "groundtruth", "alllabels", "traintestlabels", "nus_wid_tags"}
DEEPEST = 2  # Groundtruth/AllLabels/
CONCEPTS = "Concepts81.txt"
LISTS = {"all": "Imagelist.txt", "train": "TrainImagelist.txt", "test": "TestImagelist.txt"}


class LabelFiles:
    """The text files of the data set by their names, wherever in the official folders they lie."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: dict[str, Path] = {}
        waiting = [root]
        for folder in waiting:
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
                if entry.name.lower() in PLACES and is_folder(entry):
                    if len(folder.parts) < len(root.parts) + DEEPEST:  # a link may lead back
                        waiting.append(folder / entry.name)
                elif entry.name.lower().endswith((".txt", ".dat")):
                    self._found.setdefault(entry.name.lower(), folder / entry.name)

    def get(self, name: str) -> Path | None:
        return self._found.get(name.lower())

    def need(self, name: str) -> Path:
        path = self.get(name)
        if path is None:
            raise DataError(
                f"{self.root}: there is no {name}, neither there nor in ConceptsList/, ImageList/, Groundtruth/ or "
                "NUS_WID_Tags/; put it there"
            )
        return path

    def has_labels(self) -> bool:
        return any(name.startswith("labels_") for name in self._found)


@dataclass(frozen=True)
class GroundTruth:
    """What people said about the concepts, image by image."""

    concepts: tuple[str, ...]
    names: list[str]  # of the images, with forward slashes
    where: list[str]  # place of each in its list
    split: list[str | None]
    matrix: np.ndarray  # [images, concepts] int8

    @classmethod
    def read(cls, files: LabelFiles) -> GroundTruth:
        """From AllLabels where it is there: the official Labels_lake_Train.txt has a damaged line, AllLabels has none."""
        concepts = read_names(files.need(CONCEPTS))
        parts = {"train": "_Train", "test": "_Test"}
        if files.get(f"Labels_{concepts[0]}.txt") and files.get(LISTS["all"]):
            parts = {"all": ""}
        elif not files.get(f"Labels_{concepts[0]}_Test.txt"):
            del parts["test"]
        names: list[str] = []
        where: list[str] = []
        split: list[str | None] = []
        blocks = []
        for part, ending in parts.items():
            path = files.need(LISTS[part])
            images = read_image_list(path)
            names += images
            where += [f"{path.name}, row {row}" for row in range(1, len(images) + 1)]
            split += [part] * len(images)
            columns = [_column(files.need(f"Labels_{name}{ending}.txt"), path, len(images)) for name in concepts]
            blocks.append(np.stack(columns, axis=1))
        return cls(concepts, names, where, _splits(files, names) if "all" in parts else split, np.concatenate(blocks))

    def present(self, row: int) -> tuple[str, ...]:
        return tuple(self.concepts[i] for i in np.flatnonzero(self.matrix[row]))


def read_names(path: Path) -> tuple[str, ...]:
    """One name a line."""
    names = tuple(name for line in text_lines(path) if (name := line.strip()))
    if not names:
        raise DataError(f"{path} names no label; fetch it again")
    return names


def read_image_list(path: Path) -> list[str]:
    """File names with forward slashes, one a line; blank lines at the end do not count."""
    names = [line.strip().replace("\\", "/") for line in text_lines(path)]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise DataError(f"{path} names no image; fetch it again")
    return names


def _splits(files: LabelFiles, names: list[str]) -> list[str | None]:
    found: dict[str, str] = {}
    for split in ("train", "test"):
        path = files.get(LISTS[split])
        for row, name in enumerate(read_image_list(path) if path else (), 1):
            if found.setdefault(name, split) != split:
                raise DataError(
                    f"{LISTS[split]}, row {row}: {name!r} also stands in {LISTS[found[name]]}; delete it in one of them"
                )
    return [found.get(name) for name in names]


def _column(path: Path, images: Path, count: int) -> np.ndarray:
    """[count] int8 of 0 and 1."""
    try:
        cells = path.read_bytes().split()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not set(cells) <= {b"0", b"1"}:
        raise DataError(_bad_line(path))
    if len(cells) != count:
        raise DataError(
            f"{path} has {len(cells)} lines, {images} has {count}; they must belong together line by line, "
            "fetch both again"
        )
    return (np.frombuffer(b"".join(cells), np.uint8) - ord("0")).astype(np.int8)


def _bad_line(path: Path) -> str:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip() not in (b"0", b"1", b""):
            cell = line.strip().decode("utf-8", "replace")[:40]
            return (
                f"{path}, row {number}: {cell!r} is neither 0 nor 1; mend it, or put the files of Groundtruth/AllLabels "
                f"and {LISTS['all']} there, which are read instead"
            )
    return f"{path} has cells that are neither 0 nor 1; fetch it again"


def seen_unseen(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(925 seen, 81 unseen) labels of zero-shot work: the tags of TagList1k.txt that are no concept, and the concepts.

    75 of the 81 concepts are among the 1,000 tags.
    """
    files = LabelFiles(folder)
    concepts = read_names(files.need(CONCEPTS))
    keys = set(map(label_key, concepts))
    return tuple(tag for tag in read_names(files.need("TagList1k.txt")) if label_key(tag) not in keys), concepts


class ImageKeys:
    """Images by the name in a list: below the folder that it names, or all in folders of another making."""

    def __init__(self, root: Path, names: list[str]) -> None:
        self._index = ImageIndex(root)
        self._folders = {_folder(name) for name in names}

    def find(self, name: str) -> str:
        """The key; for an image that is not there the name itself, which the check then reports as missing."""
        key = self._index.find(name)
        if key is None or (_folder(key) != _folder(name) and _folder(key) in self._folders):
            return name  # b/1.jpg is another image than a/1.jpg
        return key


def _folder(name: str) -> str:
    return name.rpartition("/")[0].rpartition("/")[2]


def open_nus_wide(path: Path, config: DataConfig) -> Reading:
    """The folder that holds Groundtruth/, ImageList/ and the images."""
    folder = path if path.is_dir() else path.parent
    notes: list[str] = []
    source = FileSource(image_root(folder, [], config, notes))
    truth = GroundTruth.read(LabelFiles(folder))
    keys = ImageKeys(source.root, truth.names)

    def records() -> Iterator[Record]:
        for row, (name, split) in enumerate(zip(truth.names, truth.split, strict=True)):
            yield Record(keys.find(name), truth.where[row], truth.present(row), split=split)

    return Reading(folder, source, records, truth.concepts, name="NUS-WIDE", notes=notes)


def _sniff(path: Path) -> str:
    try:
        if not path.is_dir():
            return ""
        files = LabelFiles(path)
    except OSError:
        return ""
    return f"{CONCEPTS} and Labels_*.txt" if files.get(CONCEPTS) and files.has_labels() else ""


FORMAT = Format("nus-wide", "NUS-WIDE", _sniff, open_nus_wide)

"""NUS-WIDE for zero-shot work: 925 seen labels from the tags of Flickr's users, 81 unseen ones from the ground truth.

Training images tell the seen labels only; the unseen ones are unknown in them. Test images tell both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.finder import image_root
from manylabel.data.read.nus_wide import (
    LISTS,
    GroundTruth,
    ImageKeys,
    LabelFiles,
    read_image_list,
    read_names,
    seen_unseen,
)
from manylabel.data.read.text_file import text_lines
from manylabel.data.record import Format, Reading, Record
from manylabel.data.source import FileSource
from manylabel.error import DataError
from manylabel.labels import label_key

TAGS = {"all": "AllTags1k.txt", "train": "Train_Tags1k.dat", "test": "Test_Tags1k.dat"}


class _Tags:
    """Matrices of 0 and 1, a line per image; read line by line, since they have half a gigabyte."""

    def __init__(self, files: LabelFiles, seen: tuple[str, ...]) -> None:
        tags = read_names(files.need("TagList1k.txt"))
        wanted = set(map(label_key, seen))
        self.width = len(tags)
        self.columns = np.array([i for i, tag in enumerate(tags) if label_key(tag) in wanted])
        self.names = np.array(seen, dtype=object)
        parts = ("train", "test") if files.get(TAGS["train"]) or files.get(TAGS["test"]) else ("all",)
        self.parts = [(files.need(LISTS[part]), files.need(TAGS[part])) for part in parts]

    def rows(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(image, place, seen labels) of every image."""
        for images, path in self.parts:
            names = read_image_list(images)
            for row, (name, line) in enumerate(zip_longest(names, text_lines(path)), 1):
                if name is None and not line.strip():
                    continue
                if name is None or line is None:
                    self._refuse_count(path, images, len(names))
                yield name, f"{images.name}, row {row}", self._present(line.encode(), f"{path.name}, row {row}")

    def _present(self, line: bytes, where: str) -> tuple[str, ...]:
        cells = np.frombuffer(line.translate(None, b" \t\r\n"), np.uint8) - ord("0")  # below 0 it wraps to over 1
        if len(cells) != self.width or cells.max() > 1:
            raise DataError(
                f"{where}: expected {self.width} cells of 0 or 1, found {line[:40]!r}…; fetch the file again"
            )
        return tuple(self.names[np.flatnonzero(cells[self.columns])])

    @staticmethod
    def _refuse_count(path: Path, images: Path, count: int) -> None:
        lines = sum(bool(line.strip()) for line in text_lines(path))
        raise DataError(
            f"{path} has {lines} lines, {images} has {count}; they must belong together line by line, fetch both again"
        )


def open_nus_wide_zsl(path: Path, config: DataConfig) -> Reading:
    """The folder that holds Groundtruth/, ImageList/, NUS_WID_Tags/ and the images."""
    folder = path if path.is_dir() else path.parent
    files = LabelFiles(folder)
    seen, unseen = seen_unseen(folder)
    tags, truth = _Tags(files, seen), GroundTruth.read(files)
    row_of = {name: row for row, name in enumerate(truth.names)}
    notes = [
        f"{len(seen)} seen labels are tags of Flickr's users (without a tag it counts as absent), {len(unseen)} unseen "
        "ones were checked by people and are unknown in training images"
    ]
    source = FileSource(image_root(folder, [], config, notes))
    keys = ImageKeys(source.root, truth.names)

    def records() -> Iterator[Record]:
        for name, where, present in tags.rows():
            row = row_of.get(name)
            split = None if row is None else truth.split[row]
            if row is None or split is None:
                raise DataError(
                    f"{where}: {name!r} is in neither {LISTS['train']} nor {LISTS['test']}, or without ground truth; "
                    "the files must be of one release"
                )
            if split == "train":
                yield Record(keys.find(name), where, present, unknown=unseen, split=split)
            else:
                yield Record(keys.find(name), where, present + truth.present(row), split=split)

    return Reading(folder, source, records, seen + unseen, name="NUS-WIDE 925/81", notes=notes)


def _never(path: Path) -> str:
    return ""  # the same files are NUS-WIDE with 81 labels; this reading of them is asked for with --format


FORMAT = Format("nus-wide-925", "NUS-WIDE with 925 seen and 81 unseen labels", _never, open_nus_wide_zsl)

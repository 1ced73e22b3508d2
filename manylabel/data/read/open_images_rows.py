"""Rows of Open Images' CSV files that belong to images at hand: the files cover millions of images, most are not."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manylabel.data.read.text_file import text_lines
from manylabel.error import DataError

ABSENT_BIT, PRESENT_BIT, BOX_BIT, MACHINE_BIT = 1, 2, 4, 8
BITS, LABEL_BITS = 4, 21  # how many bits an answer takes, and a label
IMAGE = BITS + LABEL_BITS  # the bits of an image begin here
ANSWERS = {"1": PRESENT_BIT, "1.0": PRESENT_BIT, "0": ABSENT_BIT, "0.0": ABSENT_BIT}
LABEL_COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")
BOX_COLUMNS = ("ImageID", "LabelName", "XMin", "XMax", "YMin", "YMax")


def rows_at_hand(
    path: Path, images: Mapping[str, int], columns: tuple[str, ...]
) -> Iterator[tuple[int, int, dict[str, int], list[str]]]:
    """(row, number of the image, column → position, cells) of every row whose ImageID is among the images."""
    reader = csv.reader(text_lines(path), strict=True)
    try:
        header = row = next(reader, [])
        position = _positions(path, header, columns)
        image_column = position["ImageID"]
        for row in reader:
            try:
                image = images.get(row[image_column])
            except IndexError:  # a blank line, or one that was cut off
                image = None if not row else -1
            if image is None:
                continue
            _refuse_other_length(path, reader.line_num, row, header)
            yield reader.line_num, image, position, row
    except csv.Error as error:
        raise DataError(f"{path}, row {reader.line_num}: {error}; is a quote not closed?") from error
    if row:  # a download that broke off ends in half a row, most likely of an image that is not at hand
        _refuse_other_length(path, reader.line_num, row, header)


def _positions(path: Path, header: list[str], columns: tuple[str, ...]) -> dict[str, int]:
    names = [name.strip() for name in header]
    for column in columns:
        if names.count(column) != 1:
            raise DataError(
                f"{path}, row 1: {names.count(column)} columns {column!r} (there is: {', '.join(names) or 'nothing'}); "
                f"the file needs {', '.join(columns)}, fetch it again"
            )
    return {name: i for i, name in enumerate(names)}


def _refuse_other_length(path: Path, line: int, row: list[str], header: list[str]) -> None:
    if len(row) != len(header):
        raise DataError(
            f"{path}, row {line}: {len(row)} cells where the header has {len(header)}; "
            "the file is cut off or damaged, fetch it again"
        )


class Answers:
    """What was said about pairs of image and label; 8 bytes each, since there are tens of millions.

    `sure`: the confidence from which on a machine's label counts, where nobody verified it; None = none does.
    """

    def __init__(self, sure: float | None = None) -> None:
        self._packed = array("Q")  # image · 2^25 + label · 2^4 + bit
        self.sure = sure
        self.machine = 0  # rows left out because no person made them

    def add(self, image: int, label: int, bit: int) -> None:
        self._packed.append(image << IMAGE | label << BITS | bit)

    def sorted(self) -> np.ndarray:
        """[m] uint64, each once, those of one image together."""
        found = np.frombuffer(self._packed, np.uint64) if self._packed else np.empty(0, np.uint64)
        return np.unique(found)

    @staticmethod
    def unpack(packed: np.ndarray) -> dict[int, int]:
        """label → bits, of one image."""
        bits: dict[int, int] = {}
        for entry in packed.tolist():
            label = entry >> BITS & (1 << LABEL_BITS) - 1
            bits[label] = bits.get(label, 0) | entry & (1 << BITS) - 1
        return bits

    @staticmethod
    def says(bits: int) -> bool | None:
        """Whether a label is there, by all its bits: a box, then people, then a machine; None where people disagree."""
        people = bits & (ABSENT_BIT | PRESENT_BIT)
        if bits & BOX_BIT:
            return True
        return None if people == ABSENT_BIT | PRESENT_BIT else people != ABSENT_BIT

    def read_label(self, where: str, source: str, confidence: str) -> int:
        """The bit of a row; 0 for one that does not count."""
        bit = ANSWERS.get(confidence, 0)
        if not bit and not 0 < _number(confidence, where, "Confidence") < 1:
            raise DataError(f"{where}: Confidence {confidence!r} is neither 1 (present) nor 0 (absent); mend it")
        if not bit or source == "machine":
            if self.sure is not None and float(confidence) >= self.sure:
                return MACHINE_BIT
            self.machine += 1
            return 0
        return bit


class Boxes:
    """Boxes in columns, as shares of the sides of their images."""

    def __init__(self, clip: bool) -> None:
        self.clip = clip
        self.empty = 0  # boxes without area, which are left out
        self._image, self._label, self._crowd = array("Q"), array("I"), array("b")
        self._corners = array("f")

    def add(self, where: str, image: int, label: int, row: list[str], at: Mapping[str, int]) -> None:
        left, right, top, bottom = (_number(row[at[name]], where, name) for name in BOX_COLUMNS[2:])
        if min(left, top) < 0 or max(right, bottom) > 1:
            if not self.clip:
                raise DataError(
                    f"{where}: the box from ({left:g}, {top:g}) to ({right:g}, {bottom:g}) is outside its image, which "
                    "goes from 0 to 1; mend it, or cut such boxes at the edge with --set data.boxes=clip"
                )
            left, right, top, bottom = (min(max(value, 0.0), 1.0) for value in (left, right, top, bottom))
        if left > right or top > bottom:
            raise DataError(
                f"{where}: the box ends before it begins (XMin {left:g}, XMax {right:g}, YMin {top:g}, YMax {bottom:g})"
            )
        if left == right or top == bottom:
            self.empty += 1
            return
        self._image.append(image)
        self._label.append(label)
        self._crowd.append("IsGroupOf" in at and row[at["IsGroupOf"]].strip() == "1")
        self._corners.extend((left, top, right, bottom))

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(image [m], label [m], corners [m, 4] as left, top, right, bottom, crowd [m]), sorted by image."""
        image = np.array(self._image, np.int64)
        order = np.argsort(image, kind="stable")
        corners = np.array(self._corners, np.float32).reshape(-1, 4)
        return image[order], np.array(self._label, np.int64)[order], corners[order], np.array(self._crowd, bool)[order]


def _number(cell: str, where: str, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: {column} {cell!r} is not a number; mend it or fetch the file again")
    return value

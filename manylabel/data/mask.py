"""The pixels of one object, as its label file has them; turned into an array only when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.data.decode import decode_indices
from manylabel.error import DataError, DecodeError

VOID = 255  # of a label image: nobody decided what this pixel is
FARTHEST = 1e5  # a corner farther out is no pixel; filling such an outline would eat the memory
MOST_PIXELS = 2**31  # the C code behind run-length masks counts in 32 bits
NOBODY = -1  # the value of an object that has no pixels
LONGEST_RUN = 7  # characters of one run in a compressed text: 5 bits each
BONUS = 0.05  # overlap by which another value must be better before the order of the objects is given up


Runs = dict[str, Any]  # a mask as pycocotools takes it: size (height, width) and counts


@dataclass(frozen=True, eq=False, slots=True)
class Polygons:
    """Outlines as x, y, x, y, …; together they are one object."""

    parts: tuple[np.ndarray, ...]  # each [2 · corners] float32

    @classmethod
    def of(cls, parts: list[list[float]], where: str) -> Polygons:
        arrays = []
        for part in parts:
            try:
                corners = np.asarray(part)
            except ValueError:  # lists of several lengths
                corners = np.empty(0, object)
            if corners.ndim != 1 or corners.dtype.kind not in "iuf":
                raise DataError(f"{where}: a polygon must be a flat list of numbers x, y, x, y, …")
            if len(corners) < 6 or len(corners) % 2:
                raise DataError(f"{where}: a polygon of {corners.size} numbers; it needs three corners x, y at least")
            if not np.abs(corners).max() <= FARTHEST:  # also where one is not a number
                raise DataError(f"{where}: a corner of a polygon lies beyond {FARTHEST:.0f} pixels; mend it")
            arrays.append(corners.astype(np.float32))
        if not arrays:
            raise DataError(f"{where}: a mask without a polygon; leave it out, or give three corners x, y at least")
        return cls(tuple(arrays))

    def around(self) -> tuple[float, float, float, float]:
        """The box around all corners: left, top, right, bottom."""
        corners = np.concatenate(self.parts).reshape(-1, 2)
        return (*corners.min(axis=0).tolist(), *corners.max(axis=0).tolist())

    def pixels(self, height: int, width: int) -> np.ndarray:
        return _decode(self.run_length(height, width))

    def run_length(self, height: int, width: int) -> Runs:
        from pycocotools import mask

        return mask.merge(mask.frPyObjects([part.tolist() for part in self.parts], height, width))


@dataclass(frozen=True, slots=True)
class RunLength:
    """COCO's run-length encoding, in its compressed form."""

    height: int
    width: int
    counts: bytes

    @classmethod
    def of(cls, segmentation: Runs, where: str) -> RunLength:
        """From {'size': [height, width], 'counts': a list of runs or a compressed string}."""
        size, counts = segmentation.get("size"), segmentation.get("counts")
        if not (isinstance(size, list) and len(size) == 2 and all(isinstance(side, int) and side > 0 for side in size)):
            raise DataError(f"{where}: a run-length mask needs 'size': [height, width], not {size!r}")
        if size[0] * size[1] >= MOST_PIXELS:
            raise DataError(
                f"{where}: a run-length mask of {size[0]}×{size[1]} pixels is larger than any image; mend it"
            )
        if isinstance(counts, str):
            packed = counts.encode("utf-8")
        elif isinstance(counts, list) and all(isinstance(run, int) and run >= 0 for run in counts):
            if sum(counts) != size[0] * size[1]:
                raise DataError(
                    f"{where}: the runs of the mask cover {sum(counts)} pixels, its size {size[0] * size[1]}"
                )
            from pycocotools import mask

            packed = mask.frPyObjects({"size": size, "counts": counts}, *size)["counts"]
        else:
            raise DataError(f"{where}: a run-length mask needs 'counts': a list of whole numbers or a text")
        found = cls(size[0], size[1], packed)
        if isinstance(counts, str) and _covered(packed) != size[0] * size[1]:
            raise DataError(
                f"{where}: the run-length text of the mask is damaged: it does not cover {size[0]}×{size[1]}"
            )
        return found

    def around(self) -> tuple[float, float, float, float]:
        """The box around all pixels: left, top, right, bottom."""
        from pycocotools import mask

        left, top, width, height = mask.toBbox(self.run_length(self.height, self.width)).tolist()
        return left, top, left + width, top + height

    def pixels(self, height: int, width: int) -> np.ndarray:
        if (height, width) != (self.height, self.width):
            raise DataError(f"a mask of {self.width}×{self.height} pixels for an image of {width}×{height}")
        return _decode(self.run_length(height, width))

    def run_length(self, height: int, width: int) -> Runs:
        return {"size": [self.height, self.width], "counts": self.counts}


@dataclass(frozen=True, slots=True)
class LabelImage:
    """One value in an image that numbers its objects; pixels of value 255 are void and belong to nobody.

    `boxes` are those of all objects of the image in their order. Where the image numbers more or fewer objects than
    that, the order is not to be trusted, and the value whose pixels fill this object's box best is taken.
    """

    path: Path
    value: int  # the object's number, from 1
    boxes: tuple[tuple[float, float, float, float], ...] = ()

    def pixels(self, height: int, width: int) -> np.ndarray:
        """[height, width] bool; all False where the image does not show the object."""
        values = self._values(height, width)
        return values == _values_of(values, self.boxes).get(self.value, self.value)

    def void(self, height: int, width: int) -> np.ndarray:
        """[height, width] bool: pixels that must count neither for nor against a model."""
        return self._values(height, width) == VOID

    def run_length(self, height: int, width: int) -> Runs:
        from pycocotools import mask

        return mask.encode(np.asfortranarray(self.pixels(height, width), np.uint8))

    def _values(self, height: int, width: int) -> np.ndarray:
        try:
            values = decode_indices(self.path)
        except DecodeError as error:
            raise DataError(f"{self.path}: {error}; mend this image of masks or delete it") from error
        if values.shape != (height, width):
            found = f"{values.shape[1]}×{values.shape[0]}"
            raise DataError(f"{self.path} has {found} pixels, its image {width}×{height}; make them the same size")
        return values


AnyMask = Polygons | RunLength | LabelImage


def _decode(run_length: Runs) -> np.ndarray:
    from pycocotools import mask

    return mask.decode(run_length).astype(bool)


def _values_of(values: np.ndarray, boxes: tuple[tuple[float, float, float, float], ...]) -> dict[int, int]:
    """Number of each object → its value, where order alone does not tell; those without pixels get one nobody has."""
    found = [
        value for value in np.flatnonzero(np.bincount(values.ravel(), minlength=VOID)).tolist() if 0 < value < VOID
    ]
    if not found or not boxes or found[-1] == len(boxes):
        return {}
    pairs = []
    for value in found:
        rows, columns = (np.flatnonzero((values == value).any(axis=axis)) for axis in (1, 0))
        around = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
        for number, box in enumerate(boxes, 1):
            if overlap := _overlap(around, box):
                pairs.append((overlap + BONUS * (number == value), number, value))
    match = dict.fromkeys(range(1, len(boxes) + 1), NOBODY)
    taken: set[int] = set()
    for _, number, value in sorted(pairs, reverse=True):
        if match[number] == NOBODY and value not in taken:
            match[number] = value
            taken.add(value)
    return match


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Intersection over union of two boxes."""
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high)


def _covered(counts: bytes) -> int:
    """How many pixels a compressed text covers, -1 if it is none: pycocotools would write beyond the image.

    Each run is written in base 32, low digit first, one character a digit with a bit for 'more follows', the sign in
    the last; from the fourth on it is the difference to the run before the last.
    """
    digits = np.frombuffer(counts, np.uint8).astype(np.int64) - 48
    if not len(digits) or digits.min() < 0 or digits.max() > 63 or digits[-1] & 32:
        return -1
    last = np.flatnonzero(digits & 32 == 0)
    first = np.concatenate([[0], last[:-1] + 1])
    length = last - first + 1
    if length.max() > LONGEST_RUN:
        return -1
    place = np.arange(len(digits)) - np.repeat(first, length)
    runs = np.add.reduceat((digits & 31) << 5 * place, first)
    runs -= (digits[last] & 16 != 0).astype(np.int64) << 5 * length
    runs[1::2] = np.cumsum(runs[1::2])
    runs[2::2] = np.cumsum(runs[2::2])
    return int(runs.sum()) if runs.min() >= 0 else -1

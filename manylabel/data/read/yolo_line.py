"""One line of a YOLO label file: the number of a class and a box or an outline, in shares of the image's sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from manylabel.data.mask import Polygons
from manylabel.data.read.row_value import corner_box, number_in
from manylabel.data.record import Box, Thing
from manylabel.error import DataError

ROUNDING = 0.01  # by which a share may be outside 0 and 1: tools round
FARTHEST = 1.0  # the same where boxes are to be cut at the edge; more is no share but a pixel
BOX = 4  # numbers of a box: x and y of its centre, width, height
CORNERS = 6  # numbers of the smallest outline: three times x, y


@dataclass(frozen=True)
class Shape:
    """An object, in shares."""

    label: str
    box: Box
    outline: np.ndarray | None = None  # [corners, 2] float64

    def thing(self, size: tuple[int, int], where: str) -> Thing:
        """The same in the pixels of an image of this (width, height)."""
        (left, top, right, bottom), (width, height) = self.box, size
        mask = None if self.outline is None else Polygons.of([(self.outline * size).ravel().tolist()], where)
        return Thing(self.label, (left * width, top * height, right * width, bottom * height), mask=mask)


@dataclass(frozen=True)
class LineRules:
    """What a line may say."""

    names: Mapping[int, str] | None  # None = nobody named the classes
    named_in: str  # the file with the names, for messages
    keypoints: int = 0  # numbers of a pose behind a box
    clip: bool = False  # boxes that reach out of the image are to be cut

    def read(self, line: str, where: str) -> Shape:
        """The object of a line; `where` names it in messages."""
        first, *words = line.split()
        label = self._label(first, where)
        numbers = [number_in(word, where) for word in words]
        if (self.keypoints and len(numbers) == BOX + self.keypoints) or len(numbers) == BOX + 1:
            numbers = numbers[:BOX]
        if len(numbers) != BOX and (len(numbers) < CORNERS or len(numbers) % 2):
            raise DataError(
                f"{where}: {len(numbers)} numbers behind the class; a box has 4 (centre x, y, width, height), an outline "
                "x, y of three corners or more"
                + ("" if self.keypoints else ", and a pose needs 'kpt_shape' in the YAML")
            )
        reach = FARTHEST if self.clip else ROUNDING
        for number in numbers:
            if not -reach <= number <= 1 + reach:
                raise DataError(
                    f"{where}: {number:g} is not between 0 and 1; write shares of the image's width and height, not pixels"
                )
        if len(numbers) > BOX:
            return _outline(label, numbers, where)
        x, y, width, height = numbers
        return Shape(label, corner_box([x - width / 2, y - height / 2, width, height], where))

    def _label(self, word: str, where: str) -> str:
        value = number_in(word, where)
        if not value.is_integer() or value < 0:
            raise DataError(f"{where}: class {word!r} is no whole number from 0; mend it")
        if self.names is None:
            return str(int(value))
        if int(value) not in self.names:
            raise DataError(
                f"{where}: class {word} is none of the {len(self.names)} in {self.named_in} (their numbers begin with 0); "
                "mend the line or add its name"
            )
        return self.names[int(value)]


def _outline(label: str, numbers: list[float], where: str) -> Shape:
    corners = np.array(numbers).reshape(-1, 2)
    edge = corners.clip(0, 1)
    corners = np.where(np.abs(corners - edge) <= ROUNDING, edge, corners)
    (left, top), (right, bottom) = corners.min(0), corners.max(0)
    if left == right or top == bottom:
        raise DataError(f"{where}: the corners of the outline lie on one line; mend it or delete the line")
    return Shape(label, (float(left), float(top), float(right), float(bottom)), corners)

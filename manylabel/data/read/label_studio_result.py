"""One annotation of Label Studio: which labels it gives, and where its regions are (in per cent of the image)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any

import numpy as np

from manylabel.data.mask import Polygons
from manylabel.data.read.row_value import finite_numbers, listed_names
from manylabel.data.record import Box, Thing
from manylabel.error import DataError

Size = tuple[int, int]
PLAIN_REGIONS = (
    "brushlabels",
    "ellipselabels",
    "keypointlabels",
    "vectorlabels",
)  # their labels are used, not their shape


@dataclass
class Answer:
    """What one annotator said about one image."""

    labels: dict[str, None] = field(default_factory=dict)
    things: list[Thing] = field(default_factory=list)
    size: Size | None = None
    shapeless: int = 0  # regions of which only the label is used
    unused: set[str] = field(default_factory=set)  # kinds of result that say nothing about labels


def read_answer(results: Any, size_of: Callable[[], Size | None], where: str) -> Answer:
    """The results of one annotation; `size_of` gives the size of the image where a region does not."""
    if not isinstance(results, list):
        raise DataError(f"{where}: 'result' must be a list, not {brief(results)}; export it again")
    answer = Answer()
    for number, result in enumerate(results, 1):
        at = f"{where}, result {number}"
        if not isinstance(result, dict):
            raise DataError(f"{at}: {brief(result)} is no object; export it again")
        kind, value = result.get("type"), result.get("value")
        if not isinstance(value, dict):  # relations and the like have none
            answer.unused.add(str(kind))
        elif kind == "choices" and "x" not in value and "points" not in value:  # else: about one region only
            answer.labels.update(dict.fromkeys(listed_names(value.get("choices"), at)))
        elif kind in ("rectanglelabels", "polygonlabels"):
            _add_region(answer, result, value, str(kind), size_of, at)
        elif kind in PLAIN_REGIONS:
            answer.labels.update(dict.fromkeys(listed_names(value.get(str(kind)), at)))
            answer.shapeless += 1
        else:
            answer.unused.add(str(kind))
    return answer


def _add_region(
    answer: Answer,
    result: dict[str, Any],
    value: dict[str, Any],
    kind: str,
    size_of: Callable[[], Size | None],
    at: str,
) -> None:
    names = listed_names(value.get(kind), at)
    answer.labels.update(dict.fromkeys(names))
    size = _written_size(result, at) or answer.size or size_of()
    if size is None:  # no image, so nothing to draw on; that it is missing is said elsewhere
        return
    answer.size = size
    mask = None
    if kind == "rectanglelabels":
        box = _rectangle(value, size, at)
    else:
        corners = _corners(value, size, at)
        mask = Polygons.of([corners.ravel().tolist()], at)
        box = _extent(corners)
    answer.things += [Thing(name, box, mask=mask) for name in names]


def _written_size(result: dict[str, Any], at: str) -> Size | None:
    sides = [result.get("original_width"), result.get("original_height")]
    if sides == [None, None]:
        return None
    width, height = (int(side) for side in finite_numbers(sides, 2, f"{at}, original_width and original_height"))
    if width < 1 or height < 1:
        raise DataError(
            f"{at}: an image of {width}×{height} pixels; original_width and original_height must be above 0"
        )
    return width, height


def _rectangle(value: dict[str, Any], size: Size, at: str) -> Box:
    """The upright box around a rectangle that may be turned (clockwise, about its upper left corner)."""
    numbers = finite_numbers([value.get(k) for k in ("x", "y", "width", "height")], 4, f"{at}, x, y, width, height")
    if numbers[2] <= 0 or numbers[3] <= 0:
        raise DataError(f"{at}: a rectangle of {numbers[2]:g} × {numbers[3]:g} per cent; delete it")
    x, y, width, height = np.array(numbers) * [size[0], size[1], size[0], size[1]] / 100
    angle = math.radians(finite_numbers([value.get("rotation") or 0], 1, f"{at}, rotation")[0])
    if not angle:
        return float(x), float(y), float(x + width), float(y + height)
    across, down = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
    steps = np.stack([0 * across, width * across, height * down, width * across + height * down])
    corners = np.array([x, y]) + steps  # [4, 2]
    (left, top), (right, bottom) = corners.min(0), corners.max(0)
    # the corner of a turned rectangle may leave the image; the box of what is visible does not
    return max(float(left), 0.0), max(float(top), 0.0), min(float(right), size[0]), min(float(bottom), size[1])


def _corners(value: dict[str, Any], size: Size, at: str) -> np.ndarray:
    points = value.get("points")
    if not isinstance(points, list) or len(points) < 3:
        raise DataError(f"{at}: a polygon needs three points at least; delete it")
    return np.array([finite_numbers(point, 2, f"{at}, points") for point in points]) * size / 100  # [corners, 2]


def _extent(corners: np.ndarray) -> Box:
    (left, top), (right, bottom) = corners.min(0), corners.max(0)
    return float(left), float(top), float(right), float(bottom)

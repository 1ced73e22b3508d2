"""One entry of COCO's 'annotations': its box and its mask."""

from __future__ import annotations

from collections import Counter
from reprlib import repr as brief
from typing import Any

import msgspec

from manylabel.data.mask import Polygons, RunLength
from manylabel.data.record import Box
from manylabel.error import DataError


class Annotation(msgspec.Struct):
    """An entry as strangers give it; nothing is known of its values until they are looked at."""

    id: Any = None
    image_id: Any = None
    category_id: Any = None
    bbox: Any = None
    segmentation: msgspec.Raw = msgspec.Raw(b"null")
    iscrowd: Any = None
    ignore: Any = None


def read_shape(entry: Annotation, where: str, odd: Counter[str]) -> tuple[Box | None, Polygons | RunLength | None]:
    """Its box (None: a label of the whole image) and mask; what had to be left out of it is counted in `odd`."""
    mask = _mask(_decoded(entry.segmentation, where), where, odd)
    box = _box(entry.bbox, where) if entry.bbox not in (None, []) else None if mask is None else mask.around()
    if box is not None and (box[0] >= box[2] or box[1] >= box[3]):
        odd["objects have a box without any area; their labels are kept, the boxes are not"] += 1
        return None, None
    return box, None if box is None else mask


def _decoded(raw: msgspec.Raw, where: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise DataError(f"{where}: segmentation is no valid JSON ({str(error)[:80]})") from None


def _box(value: Any, where: str) -> Box:
    if not (isinstance(value, list) and len(value) == 4 and all(map(_is_number, value))):
        raise DataError(f"{where}: bbox must be four numbers [x, y, width, height], not {brief(value)}")
    left, top, width, height = map(float, value)
    if width < 0 or height < 0:
        raise DataError(f"{where}: bbox {value} has a negative size; it is [x, y, width, height]")
    return left, top, left + width, top + height


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -1e9 < value < 1e9  # NaN is neither


def _mask(value: Any, where: str, odd: Counter[str]) -> Polygons | RunLength | None:
    if value in (None, [], {}):
        return None
    if isinstance(value, dict):
        return RunLength.of(value, where)
    if not isinstance(value, list):
        raise DataError(f"{where}: segmentation must be polygons or a run-length mask, not {brief(value)}")
    parts = [value] if _is_number(value[0]) else value  # some tools write a single outline without its own list
    thick = [part for part in parts if not (isinstance(part, list) and len(part) in (0, 2, 4))]
    if len(thick) < len(parts):
        odd["outlines have less than three corners and are left out"] += len(parts) - len(thick)
    return Polygons.of(thick, where) if thick else None

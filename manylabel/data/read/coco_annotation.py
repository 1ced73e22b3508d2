"""One entry of COCO's 'annotations': checked, and packed into bytes."""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any, TypedDict, cast

import numpy as np

from manylabel.data.mask import GivenRuns, Polygons, RunLength
from manylabel.data.record import Box
from manylabel.error import DataError

HEAD = struct.Struct("<iB4d")  # label, flags, box
CROWD, DIFFICULT, BOXED, OUTLINED, RUNS = 1, 2, 4, 8, 16
SIZE = struct.Struct("<ii")


class GivenAnnotation(TypedDict, total=False):
    """An entry as strangers give it; nothing is known of its values until they are looked at."""

    id: object
    image_id: object
    category_id: object
    bbox: object
    segmentation: object
    iscrowd: object
    ignore: object


@dataclass(frozen=True, slots=True)
class Annotation:
    """One object, or with no box a label of the whole image."""

    label: int  # position in the list of labels
    box: Box | None
    crowd: bool
    difficult: bool
    mask: Polygons | RunLength | None

    def packed(self) -> bytes:
        flags = CROWD * self.crowd | DIFFICULT * self.difficult | BOXED * (self.box is not None)
        tail = b""
        if isinstance(self.mask, Polygons):
            flags |= OUTLINED
            lengths = np.array([len(self.mask.parts), *map(len, self.mask.parts)], "<i4")
            tail = lengths.tobytes() + b"".join(part.tobytes() for part in self.mask.parts)
        elif self.mask is not None:
            flags |= RUNS
            tail = SIZE.pack(self.mask.height, self.mask.width) + self.mask.counts
        return HEAD.pack(self.label, flags, *(self.box or (0.0, 0.0, 0.0, 0.0))) + tail

    @classmethod
    def unpacked(cls, data: bytes) -> Annotation:
        label, flags, *box = HEAD.unpack_from(data)
        mask: Polygons | RunLength | None = None
        if flags & OUTLINED:
            count = int(np.frombuffer(data, "<i4", 1, HEAD.size)[0])
            lengths = np.frombuffer(data, "<i4", count, HEAD.size + 4)
            corners = np.frombuffer(data[HEAD.size + 4 + 4 * count :], np.float32)
            mask = Polygons((corners,) if count == 1 else tuple(np.split(corners, np.cumsum(lengths)[:-1])))
        elif flags & RUNS:
            height, width = SIZE.unpack_from(data, HEAD.size)
            mask = RunLength(height, width, data[HEAD.size + SIZE.size :])
        whole = tuple(box) if flags & BOXED else None
        return cls(label, whole, bool(flags & CROWD), bool(flags & DIFFICULT), mask)


def read_annotation(entry: GivenAnnotation, label: int, where: str, odd: Counter[str]) -> Annotation:
    """What an entry says; what had to be left out of it is counted in `odd`."""
    mask = _mask(entry.get("segmentation"), where, odd)
    given = entry.get("bbox")
    box = _box(given, where) if given not in (None, []) else None if mask is None else _around(mask)
    if box is not None and (box[0] >= box[2] or box[1] >= box[3]):
        odd["objects have a box without any area; their labels are kept, the boxes are not"] += 1
        box = mask = None
    return Annotation(label, box, bool(entry.get("iscrowd")), bool(entry.get("ignore")), mask)


def _box(value: Any, where: str) -> Box:
    if not (isinstance(value, list) and len(value) == 4 and all(_is_number(each) for each in value)):
        raise DataError(f"{where}: bbox must be four numbers [x, y, width, height], not {brief(value)}")
    left, top, width, height = map(float, value)
    if width < 0 or height < 0:
        raise DataError(f"{where}: bbox {value} has a negative size; it is [x, y, width, height]")
    return left, top, left + width, top + height


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9 and math.isfinite(value)


def _mask(value: Any, where: str, odd: Counter[str]) -> Polygons | RunLength | None:
    if value in (None, [], {}):
        return None
    if isinstance(value, dict):
        return RunLength.of(cast(GivenRuns, value), where)
    if not isinstance(value, list):
        raise DataError(f"{where}: segmentation must be polygons or a run-length mask, not {brief(value)}")
    parts = [value] if _is_number(value[0]) else value  # some tools write a single outline without its own list
    thick = [part for part in parts if not (isinstance(part, list) and len(part) in (0, 2, 4))]
    if len(thick) < len(parts):
        odd["outlines have less than three corners and are left out"] += len(parts) - len(thick)
    return Polygons.of(thick, where) if thick else None


def _around(mask: Polygons | RunLength) -> Box:
    """The box of a mask for which none is given."""
    if isinstance(mask, Polygons):
        x = np.concatenate([part[0::2] for part in mask.parts])
        y = np.concatenate([part[1::2] for part in mask.parts])
        return float(x.min()), float(y.min()), float(x.max()), float(y.max())
    from pycocotools import mask as coco_mask

    left, top, width, height = coco_mask.toBbox(mask.run_length(mask.height, mask.width)).tolist()
    return left, top, left + width, top + height

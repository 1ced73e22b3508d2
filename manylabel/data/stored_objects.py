"""The boxes and masks of a table's images, in pixels of the stored image.

What cannot be right is an error that names image and object: a box without area, and a mask of another size than is told
of its image or beside its box, at once for all images (`check_masks`); what only pixels show, when the image is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manylabel import console
from manylabel.data.mask import LabelImage, Polygons, RunLength
from manylabel.data.scenes import draw_scene
from manylabel.data.source import SceneSource
from manylabel.data.table import Table
from manylabel.detect.target import DetectionTarget
from manylabel.error import DataError, DecodeError

SOME_SCENES = 200  # that are drawn to count their objects
ROUNDING = 2  # pixels that a mask may be beside its box: annotation tools round


@dataclass(frozen=True, eq=False)
class StoredObjects:
    """The objects of an image in its own pixels."""

    size: tuple[int, int]  # width, height
    target: DetectionTarget
    crowd: Tensor  # [m] bool: which of those to ignore are crowds; the others are hard to see


class ObjectReader:
    """Row → the image and what is in it; scenes know their objects when they are drawn."""

    def __init__(self, table: Table) -> None:
        self.source, self.keys, self.sizes = table.source, table.keys, table.sizes
        self.labels, self.objects = table.labels, table.objects
        if not isinstance(self.source, SceneSource):
            if self.objects is None or not len(self.objects):
                raise DataError(f"{table.name} has no boxes; detection needs data with boxes, e.g. COCO or PASCAL VOC")
            self._refuse_flat_boxes(self.objects.box)

    def check_masks(self) -> None:
        """Stop before anything is trained where a mask belongs elsewhere; only images of masks must be read for it."""
        if self.objects is None:
            return
        told_by_image = [n for n, mask in enumerate(self.objects.masks) if isinstance(mask, LabelImage)]
        self._check_label_images(np.unique(self.objects.row[told_by_image]))
        for number, mask in enumerate(self.objects.masks):
            if mask is None or isinstance(mask, LabelImage):
                continue
            row = int(self.objects.row[number])
            told = self._told_size(row)
            if isinstance(mask, RunLength) and told is not None and told != (mask.width, mask.height):
                raise DataError(
                    f"{self._name(number)}: a mask of {mask.width}×{mask.height} pixels for an image of "
                    f"{told[0]}×{told[1]}; mend the mask, or leave it out"
                )
            left, top, right, bottom = mask.around()
            if isinstance(mask, RunLength) and right <= left:
                raise self._no_pixel(number)
            box = self.objects.box[number]
            if (
                left > box[2] + ROUNDING
                or top > box[3] + ROUNDING
                or right < box[0] - ROUNDING
                or bottom < box[1] - ROUNDING
            ):
                raise DataError(f"{self._name(number)}: its mask lies outside of its box; mend one of them")

    def _check_label_images(self, rows: np.ndarray) -> None:
        if not len(rows):
            return
        with console.counting("comparing masks with boxes", len(rows)) as advance:
            for row in rows.tolist():
                with suppress(DecodeError):  # a broken image is dropped and listed when it is its turn
                    self.truth(row)
                advance(1)

    def read(self, row: int, at_least: int | None = None) -> tuple[Image.Image, StoredObjects]:
        """The image may be decoded smaller than it is stored, but not below `at_least`; DecodeError if it is unreadable."""
        if isinstance(self.source, SceneSource):
            return self._drawn(row)
        image = self.source.read(str(self.keys[row]), at_least=at_least)
        return image, self.truth(row)

    def per_image(self, rows: np.ndarray) -> np.ndarray:
        """How many objects of each label an image of these rows has on average, those to ignore left out. [N] float32"""
        count = np.zeros(len(self.labels), np.float32)
        if isinstance(self.source, SceneSource):  # some of them tell it of all
            rows = rows[:: math.ceil(len(rows) / SOME_SCENES)]
            for row in rows:
                np.add.at(count, self._drawn(int(row))[1].target.labels.numpy(), 1)
        else:
            assert self.objects is not None
            own = np.isin(self.objects.row, rows) & ~self.objects.crowd & ~self.objects.difficult
            np.add.at(count, self.objects.label[own], 1)
        return count / len(rows)

    def truth(self, row: int) -> StoredObjects:
        """The objects without the pixels, where these need not be drawn for them."""
        if isinstance(self.source, SceneSource):
            return self._drawn(row)[1]
        return self._stored(row, self.source.describe(str(self.keys[row])))

    def _drawn(self, row: int) -> tuple[Image.Image, StoredObjects]:
        assert isinstance(self.source, SceneSource)
        scene = draw_scene(self.source.seed, int(str(self.keys[row]).rpartition("-")[2]), self.source.size)
        things = [thing for thing in scene.objects if thing.label in self.labels]
        boxes = np.array([thing.box for thing in things], np.float32).reshape(-1, 4)
        labels = np.array([self.labels.index(thing.label) for thing in things], np.int64)
        none, size = np.zeros(len(things), bool), (self.source.size, self.source.size)
        return Image.fromarray(scene.image), _as_stored(size, boxes, labels, [t.mask for t in things], none, none)

    def _stored(self, row: int, size: tuple[int, int]) -> StoredObjects:
        """What the label file says of an image of this width and height."""
        assert self.objects is not None
        told = self._told_size(row)
        if told is not None and told != size:
            raise DataError(
                f"{self.keys[row]} has {size[0]}×{size[1]} pixels, its label file says {told[0]}×{told[1]}: the boxes would "
                "not fit; use the images that were labelled, or mend the file"
            )
        own = self.objects.of(row)
        edge = np.array([*size, *size], np.float32)
        boxes = np.clip(self.objects.box[own], 0, edge)
        for number, box in zip(own, boxes, strict=True):
            if box[2] <= box[0] or box[3] <= box[1]:
                raise DataError(
                    f"{self._name(number)}: its box is outside of the image of {size[0]}×{size[1]} pixels; mend it"
                )
        masks = [self._pixels(number, size) for number in own]
        crowd, difficult = self.objects.crowd[own], self.objects.difficult[own]
        return _as_stored(size, boxes, self.objects.label[own].astype(np.int64), masks, crowd, difficult)

    def _told_size(self, row: int) -> tuple[int, int] | None:
        """Width and height of an image, where its label file says them."""
        if self.sizes is None or not self.sizes[row].all():
            return None
        width, height = self.sizes[row].tolist()
        return width, height

    def _pixels(self, number: int, size: tuple[int, int]) -> np.ndarray | None:
        """The mask of one object, None where nobody drew it. [H, W] bool"""
        assert self.objects is not None
        mask = self.objects.masks[number]
        if mask is None:
            return None
        try:
            pixels = mask.pixels(size[1], size[0])
        except DataError as error:
            raise DataError(f"{self._name(number)}: {error}; mend the mask, or leave it out") from error
        if not pixels.any():
            if isinstance(mask, LabelImage | Polygons):  # such an image need not show every object, and
                return None  # a small outline may lie between the centres of pixels: the object teaches its box
            raise self._no_pixel(number)
        left, top, right, bottom = self.objects.box[number]
        rows = slice(max(0, int(top) - ROUNDING), int(np.ceil(bottom)) + ROUNDING)
        inside = np.count_nonzero(pixels[rows, max(0, int(left) - ROUNDING) : int(np.ceil(right)) + ROUNDING])
        if inside < np.count_nonzero(pixels) / 2:
            where = "lies" if inside == 0 else "lies mostly"
            raise DataError(f"{self._name(number)}: its mask {where} outside of its box; mend one of them")
        return pixels

    def _no_pixel(self, number: int) -> DataError:
        return DataError(f"{self._name(number)}: its mask has no pixel in the image; mend the mask, or leave it out")

    def _refuse_flat_boxes(self, box: np.ndarray) -> None:
        flat = np.flatnonzero(~(np.isfinite(box).all(axis=1) & (box[:, 2:] > box[:, :2]).all(axis=1)))
        if len(flat):
            more = f" ({len(flat)} boxes are like that)" if len(flat) > 1 else ""
            raise DataError(
                f"{self._name(flat[0])}: its box {box[flat[0]].tolist()} (left, top, right, bottom) has no area{more}; "
                "mend it, or leave the object out"
            )

    def _name(self, number: int) -> str:
        """An object in the words of an error: its image, its number there from 1, and its label."""
        assert self.objects is not None
        row = int(self.objects.row[number])
        label = self.labels.names[self.objects.label[number]]
        return f"{self.keys[row]}, object {number - self.objects.of(row)[0] + 1} ({label})"


def _as_stored(
    size: tuple[int, int],
    boxes: np.ndarray,
    labels: np.ndarray,
    masks: Sequence[np.ndarray | None],
    crowd: np.ndarray,
    difficult: np.ndarray,
) -> StoredObjects:
    drawn = None
    if any(mask is not None for mask in masks):
        nothing = np.zeros((size[1], size[0]), bool)
        drawn = torch.from_numpy(np.stack([nothing if mask is None else mask for mask in masks]))
    ignore = torch.from_numpy(crowd | difficult)
    target = DetectionTarget(torch.from_numpy(boxes), torch.from_numpy(labels), drawn, ignore)
    return StoredObjects(size, target, torch.from_numpy(crowd.copy()))

"""An image with its boxes and masks to a square tensor: all of them are moved by one map of coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2

from manylabel.data.transform import GREY
from manylabel.detect.target import DetectionTarget
from manylabel.error import ConfigError
from manylabel.preprocess import Preprocess
from manylabel.require import require

SMALLEST = 1.0  # pixels: a box with a shorter side cannot be found


@dataclass(frozen=True)
class Placement:
    """Where a stored image lies in the S × S pixels of the input: x' = scale · x + shift; mirrored, the scale is below 0."""

    stored: tuple[int, int]  # width and height of the stored image
    side: int  # S
    scale: tuple[float, float]  # of x and y
    shift: tuple[float, float]

    def forward(self, boxes: Tensor) -> Tensor:
        """Boxes [m, 4] in pixels of the stored image → in pixels of the input, also where that is beyond its edge."""
        corners = boxes.reshape(-1, 2, 2) * boxes.new_tensor(self.scale) + boxes.new_tensor(self.shift)
        return _ordered(corners)

    def back(self, boxes: Tensor) -> Tensor:
        """Boxes [m, 4] in pixels of the input → in pixels of the stored image, cut at its edge."""
        corners = (boxes.reshape(-1, 2, 2) - boxes.new_tensor(self.shift)) / boxes.new_tensor(self.scale)
        return _ordered(torch.minimum(corners.clamp(min=0), boxes.new_tensor(self.stored)))

    def picture(self, image: Image.Image, resample: Image.Resampling) -> Image.Image:
        """The pixels of the input: the image, which may have been decoded smaller than it is stored, on grey."""
        seen = self.back(torch.tensor([[0, 0, self.side, self.side]], dtype=torch.float64))  # what is not cut off
        x, y = image.width / self.stored[0], image.height / self.stored[1]
        left, top, right, bottom = seen[0].tolist()
        box = (left * x, top * y, min(right * x, image.width), min(bottom * y, image.height))
        left, top, right, bottom = self.forward(seen)[0].round().int().tolist()
        part = image.resize((right - left, bottom - top), resample, box=box)
        if self.scale[0] < 0:
            part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if part.size == (self.side, self.side):
            return part
        canvas = Image.new("RGB", (self.side, self.side), (GREY, GREY, GREY))
        canvas.paste(part, (left, top))
        return canvas

    def masks(self, masks: Tensor) -> Tensor:
        """Masks [m, H, W] of the stored image → [m, S, S]: every pixel takes the value at its centre."""
        (x, in_x), (y, in_y) = (self._sources(axis) for axis in (0, 1))
        return masks[:, y][:, :, x] & in_y[:, None] & in_x

    def _sources(self, axis: int) -> tuple[Tensor, Tensor]:
        """The stored pixel under each pixel of the input along one axis, and whether there is one. [S] each"""
        centre = torch.arange(self.side, dtype=torch.float64) + 0.5
        source = ((centre - self.shift[axis]) / self.scale[axis]).floor().long()
        last = self.stored[axis] - 1
        return source.clamp(0, last), (source >= 0) & (source <= last)


class ObjectTransform:
    """Stretch (or fit, with grey beside it) to S × S; in training also mirrored, and at another scale (large-scale jitter).

    An image that is scaled beyond S × S is cut at a random place, a smaller one lies in the upper left corner. Random
    numbers come from torch's generator.
    """

    def __init__(self, preprocess: Preprocess, flip: bool = False, scale: tuple[float, float] = (1.0, 1.0)) -> None:
        low, high = scale
        require(0 < low <= high <= 10, "scale", scale, "two numbers, the first above 0 and not larger than the second")
        if preprocess.resize == "crop":
            raise ConfigError("resize=crop would cut objects off; use stretch or pad for detection")
        self.side, self.fit = preprocess.size, preprocess.resize == "pad"
        self.flip, self.scale = flip, scale
        bicubic = preprocess.interpolation == "bicubic"
        self.resample = Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR

    @property
    def at_least(self) -> int:
        """How many pixels the decoder must give on the short side so that nothing is enlarged needlessly."""
        return math.ceil(self.side * self.scale[1])

    def place(self, width: int, height: int) -> Placement:
        """Where an image of this size comes to lie; drawn anew each time where that is random."""
        low, high = self.scale
        jitter = low if low == high else float(torch.empty(()).uniform_(low, high))
        mirrored = self.flip and bool(torch.rand(()) < 0.5)
        fitted = (width, height) if self.fit else (1, 1)  # sides whose proportion is kept
        scale, shift = [], []
        for side, stored in zip(fitted, (width, height), strict=True):
            scaled = max(1, round(jitter * self.side * side / max(fitted)))
            cut = int(torch.randint(scaled - self.side + 1, ())) if scaled > self.side else 0
            scale.append(scaled / stored)
            shift.append(-float(cut))
        if mirrored:  # x → width − x before anything else
            shift[0] += scale[0] * width
            scale[0] = -scale[0]
        return Placement((width, height), self.side, (scale[0], scale[1]), (shift[0], shift[1]))

    def __call__(self, image: Image.Image) -> np.ndarray:
        """The pixels alone. uint8 [3, S, S]"""
        pixels: np.ndarray = self.pixels(image, self.place(*image.size)).numpy()
        return pixels

    def pixels(self, image: Image.Image, place: Placement) -> Tensor:
        tensor: Tensor = v2.functional.pil_to_tensor(place.picture(image, self.resample))
        return tensor


def moved(target: DetectionTarget, place: Placement) -> DetectionTarget:
    """The objects of a stored image in its place in the input; those of which nothing can be found there are left out.

    Where the edge of the input cuts an object whose mask is known, its box shrinks to what is left of it.
    """
    whole = place.forward(target.boxes)
    boxes = whole.clamp(0, place.side)
    masks, visible = None, torch.ones(len(boxes), dtype=torch.bool)
    if target.masks is not None:
        masks = place.masks(target.masks)
        left = masks.flatten(1).any(dim=1)
        visible = left | ~target.masks.flatten(1).any(dim=1)  # one whose mask was never drawn has its box
        cut = ((whole - boxes).abs() > 0.5).any(dim=1) & left
        boxes[cut] = _within(boxes[cut], bounds(masks[cut]))
    found = (boxes[:, 2:] - boxes[:, :2] >= SMALLEST).all(dim=1) & visible
    return DetectionTarget(boxes, target.labels, masks, target.ignore).take(found)


def bounds(masks: Tensor) -> Tensor:
    """The box around each mask [m, H, W], which has a pixel at least. [m, 4] float32"""
    sides = []
    for seen in (masks.any(dim=1), masks.any(dim=2)):  # columns [m, W], rows [m, H]
        first = seen.int().argmax(dim=1)
        last = seen.shape[1] - seen.flip(1).int().argmax(dim=1)
        sides.append(torch.stack([first, last]))
    return torch.stack([sides[0][0], sides[1][0], sides[0][1], sides[1][1]], dim=1).float()


def _within(boxes: Tensor, limits: Tensor) -> Tensor:
    return torch.cat([torch.maximum(boxes[:, :2], limits[:, :2]), torch.minimum(boxes[:, 2:], limits[:, 2:])], dim=1)


def _ordered(corners: Tensor) -> Tensor:
    """Two corners of each box in any order [m, 2, 2] → left, top, right, bottom [m, 4]"""
    return torch.cat([corners.amin(dim=1), corners.amax(dim=1)], dim=1)

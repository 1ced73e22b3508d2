"""Crops of a few sizes at a few places, as RM's released code trains with (known from ML-GCN and action recognition)."""

from __future__ import annotations

import torch
from PIL import Image

from manylabel.data.transform import Square
from manylabel.preprocess import Preprocess

SCALES = (1.0, 0.875, 0.75, 0.66, 0.5)  # of the photo's shorter side
DISTORTION = 2  # steps of scale by which the two sides of a crop may differ
NEAR = 3  # a side within so many pixels of the wanted one is that one
PLACES = ((0, 0), (4, 0), (0, 4), (4, 4), (2, 2), (0, 2), (4, 2), (2, 4), (2, 0), (1, 1), (3, 1), (1, 3), (3, 3))


class MultiScaleCrop:
    """PIL image → PIL image S × S: one of the pairs of sides, at one of 13 places a quarter of the room apart."""

    def __init__(self, preprocess: Preprocess) -> None:
        self.size, self.resample = preprocess.size, Square(preprocess).resample

    def __call__(self, image: Image.Image) -> Image.Image:
        shorter = min(image.size)
        sides = [self._side(int(scale * shorter), shorter) for scale in SCALES]
        pairs = [(w, h) for i, h in enumerate(sides) for j, w in enumerate(sides) if abs(i - j) <= DISTORTION]
        width, height = pairs[int(torch.randint(len(pairs), ()))]
        across, down = PLACES[int(torch.randint(len(PLACES), ()))]
        left, top = across * ((image.width - width) // 4), down * ((image.height - height) // 4)
        return image.resize((self.size, self.size), self.resample, box=(left, top, left + width, top + height))

    def _side(self, side: int, most: int) -> int:
        return self.size if abs(side - self.size) < NEAR and self.size <= most else max(side, 1)

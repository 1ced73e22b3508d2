"""Images to pixels, the fixed way: evaluating, predicting and the feature cache see an image like this, and training does
where nothing varies it. Plain Pillow and NumPy. Normalisation is the backbone's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageOps

from manylabel.config import AugmentConfig
from manylabel.preprocess import Preprocess

GREY = 128
Transform = Callable[[Image.Image], np.ndarray]  # PIL image → uint8 [3, S, S]


class Square:
    """PIL image → PIL image of S × S pixels, by stretching, cropping or padding. Plain Pillow: it runs once per image."""

    def __init__(self, preprocess: Preprocess) -> None:
        self.size = preprocess.size
        self.how = preprocess.resize
        self.crop_share = preprocess.crop_share
        bicubic = preprocess.interpolation == "bicubic"
        self.resample = Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR

    def __call__(self, image: Image.Image) -> Image.Image:
        size = (self.size, self.size)
        if self.how == "crop":
            return ImageOps.fit(image, size, self.resample, bleed=(1 - self.crop_share) / 2)
        if self.how == "pad":
            return ImageOps.pad(image, size, self.resample, color=(GREY, GREY, GREY))
        return image.resize(size, self.resample)


class Plain:
    """PIL image → uint8 [3, S, S]. A class and not a closure, because worker processes may need to pickle it."""

    def __init__(self, preprocess: Preprocess) -> None:
        self.square = Square(preprocess)

    def __call__(self, image: Image.Image) -> np.ndarray:
        return np.array(self.square(image)).transpose(2, 0, 1)  # a copy, for torch wants pixels it may write to


def evaluation_transform(preprocess: Preprocess) -> Transform:
    """PIL image → uint8 [3, S, S], the same every time."""
    return Plain(preprocess)


def needed_side(preprocess: Preprocess, augment: AugmentConfig | None = None) -> int:
    """How many pixels the decoder must give on the short side so that nothing is enlarged needlessly."""
    if augment and augment.random_crop:
        return math.ceil(preprocess.size / math.sqrt(augment.random_crop))
    if augment and augment.multi_scale:
        return 2 * preprocess.size  # the smallest crop has half the side
    if preprocess.resize == "crop":
        return math.ceil(preprocess.size / preprocess.crop_share)
    return preprocess.size

"""Images to tensors: the fixed way of evaluation, and the varied way of training. Normalisation is the backbone's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from PIL import Image, ImageOps
from torch import Tensor
from torchvision.transforms import v2

from manylabel.config import AugmentConfig
from manylabel.preprocess import Preprocess

GREY = 128
Transform = Callable[[Image.Image], Tensor]


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

    def __call__(self, image: Image.Image) -> Tensor:
        tensor: Tensor = v2.functional.pil_to_tensor(self.square(image))
        return tensor


class Cutout(v2.Transform):
    """One grey square at a random place; its side is a share of the image's."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        height, width = inpt.shape[-2:]
        half = round(self.share * min(height, width)) // 2
        y, x = int(torch.randint(height, ())), int(torch.randint(width, ()))
        inpt = inpt.clone()
        inpt[..., max(0, y - half) : y + half, max(0, x - half) : x + half] = GREY
        return inpt


def evaluation_transform(preprocess: Preprocess) -> Transform:
    """PIL image → uint8 [3, S, S], the same every time."""
    return Plain(preprocess)


def training_transform(preprocess: Preprocess, augment: AugmentConfig) -> Transform:
    """PIL image → uint8 [3, S, S], varied as `augment` says; random numbers come from torch's generator."""
    steps: list[Callable[[Any], Any]] = [Square(preprocess)]
    if augment.random_crop:
        bicubic = preprocess.interpolation == "bicubic"
        how = v2.InterpolationMode.BICUBIC if bicubic else v2.InterpolationMode.BILINEAR
        steps = [v2.RandomResizedCrop(preprocess.size, (augment.random_crop, 1.0), interpolation=how)]
    steps.append(v2.PILToTensor())
    if augment.flip:
        steps.append(v2.RandomHorizontalFlip())
    if augment.colour:
        c = augment.colour
        steps.append(v2.ColorJitter(brightness=c, contrast=c, saturation=c))
    if augment.autoaugment:
        steps.append(v2.AutoAugment(v2.AutoAugmentPolicy.IMAGENET, fill=GREY))
    if augment.randaugment:
        steps.append(v2.RandAugment(magnitude=augment.randaugment, fill=GREY))
    if augment.cutout:
        steps.append(Cutout(augment.cutout))
    if augment.erasing:
        steps.append(v2.RandomErasing(augment.erasing, value=GREY))
    return v2.Compose(steps)


def needed_side(preprocess: Preprocess, augment: AugmentConfig | None = None) -> int:
    """How many pixels the decoder must give on the short side so that nothing is enlarged needlessly."""
    if augment and augment.random_crop:
        return math.ceil(preprocess.size / math.sqrt(augment.random_crop))
    if preprocess.resize == "crop":
        return math.ceil(preprocess.size / preprocess.crop_share)
    return preprocess.size


def varies(augment: AugmentConfig) -> bool:
    """Whether single training images differ from epoch to epoch, so that features of them cannot be computed once."""
    a = augment
    return a.flip or a.autoaugment or any((a.random_crop, a.randaugment, a.colour, a.cutout, a.erasing))

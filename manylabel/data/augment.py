"""Images to pixels, the varied way of training. Random numbers come from torch's generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import v2

from manylabel.config import AugmentConfig
from manylabel.data.multi_scale import MultiScaleCrop
from manylabel.data.transform import GREY, Square, Transform
from manylabel.preprocess import Preprocess


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


class Varied:
    """PIL image → uint8 [3, S, S] through torchvision's steps."""

    def __init__(self, steps: list[Callable[[Any], Any]]) -> None:
        self.steps = v2.Compose(steps)

    def __call__(self, image: Image.Image) -> np.ndarray:
        pixels: np.ndarray = self.steps(image).numpy()
        return pixels


def training_transform(preprocess: Preprocess, augment: AugmentConfig) -> Transform:
    """PIL image → uint8 [3, S, S], varied as `augment` says."""
    steps: list[Callable[[Any], Any]] = [Square(preprocess)]
    if augment.random_crop:
        bicubic = preprocess.interpolation == "bicubic"
        how = v2.InterpolationMode.BICUBIC if bicubic else v2.InterpolationMode.BILINEAR
        steps = [v2.RandomResizedCrop(preprocess.size, (augment.random_crop, 1.0), interpolation=how)]
    if augment.multi_scale:
        steps = [MultiScaleCrop(preprocess)]
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
    return Varied(steps)


def varies(augment: AugmentConfig) -> bool:
    """Whether single training images differ from epoch to epoch, so that features of them cannot be computed once."""
    a = augment
    return (
        a.flip or a.multi_scale or a.autoaugment or any((a.random_crop, a.randaugment, a.colour, a.cutout, a.erasing))
    )

"""Images to tensors: the fixed way of evaluation, and the varied way of training. Normalisation is the backbone's."""

from __future__ import annotations

import math
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2

from manylabel.config import AugmentConfig
from manylabel.preprocess import Preprocess

GREY = 128


def _interpolation(preprocess: Preprocess) -> v2.InterpolationMode:
    return v2.InterpolationMode.BICUBIC if preprocess.interpolation == "bicubic" else v2.InterpolationMode.BILINEAR


class PadToSquare(v2.Transform):
    """Grey bars on the shorter sides."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        height, width = v2.functional.get_size(inpt)
        side = max(height, width)
        left, top = (side - width) // 2, (side - height) // 2
        return v2.functional.pad(inpt, [left, top, side - width - left, side - height - top], fill=GREY)


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


def _to_square(preprocess: Preprocess) -> list[v2.Transform]:
    size, how = preprocess.size, _interpolation(preprocess)
    if preprocess.resize == "crop":
        return [v2.Resize(round(size / preprocess.crop_share), how), v2.CenterCrop(size)]
    if preprocess.resize == "pad":
        return [PadToSquare(), v2.Resize((size, size), how)]
    return [v2.Resize((size, size), how)]


def evaluation_transform(preprocess: Preprocess) -> v2.Compose:
    """PIL image → uint8 [3, S, S], the same every time."""
    return v2.Compose([*_to_square(preprocess), v2.PILToTensor()])


def training_transform(preprocess: Preprocess, augment: AugmentConfig) -> v2.Compose:
    """PIL image → uint8 [3, S, S], varied as `augment` says; random numbers come from torch's generator."""
    steps: list[v2.Transform] = []
    if augment.random_crop:
        scale = (augment.random_crop, 1.0)
        steps.append(v2.RandomResizedCrop(preprocess.size, scale, interpolation=_interpolation(preprocess)))
    else:
        steps += _to_square(preprocess)
    steps.append(v2.PILToTensor())
    if augment.flip:
        steps.append(v2.RandomHorizontalFlip())
    if augment.colour:
        c = augment.colour
        steps.append(v2.ColorJitter(brightness=c, contrast=c, saturation=c))
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
    """Whether training images differ from epoch to epoch, so that features of them cannot be computed once."""
    a = augment
    return a.flip or any((a.random_crop, a.randaugment, a.colour, a.cutout, a.erasing, a.mixup, a.cutmix))


def as_tensor(image: Image.Image, transform: v2.Compose) -> Tensor:
    tensor: Tensor = transform(image)
    return tensor

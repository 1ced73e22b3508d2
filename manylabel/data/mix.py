"""MixUp and CutMix for many labels: soft targets where both images are known, unknown where either is.

Features that were computed before are mixed like images: what is half of each is half of each label.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from manylabel.config import AugmentConfig
from manylabel.features import Features


def mix_batch(
    inputs: Tensor | Features, targets: Tensor, known: Tensor, augment: AugmentConfig, rng: np.random.Generator
) -> tuple[Tensor | Features, Tensor, Tensor]:
    """Images [B, 3, H, W] or features, targets [B, N] in 0..1, known [B, N] → the same, each mixed with another one.

    A label of both images keeps target 1, a label of one gets that image's share. Where one of the two does not
    know a label, the share that is missing is unknown, so the entry is. With both switched on, each batch tosses a coin.
    """
    if len(targets) < 2 or not (augment.mixup or augment.cutmix):
        return inputs, targets, known
    cut = augment.cutmix > 0 and (augment.mixup == 0 or rng.random() < 0.5)
    alpha = augment.cutmix if cut else augment.mixup
    share = float(rng.beta(alpha, alpha))
    other = torch.from_numpy(rng.permutation(len(targets)))
    if isinstance(inputs, Features):
        inputs = Features({name: _blend(stage, other, share) for name, stage in inputs.stages.items()})
    elif cut:
        inputs, share = _paste(inputs, other, share, rng)
    else:
        inputs = _blend(inputs, other, share)
    if share == 1.0:
        return inputs, targets, known
    return inputs, targets * share + targets[other] * (1 - share), known & known[other]


def _blend(x: Tensor, other: Tensor, share: float) -> Tensor:
    return (x.float() * share + x[other].float() * (1 - share)).to(x.dtype)


def _paste(images: Tensor, other: Tensor, share: float, rng: np.random.Generator) -> tuple[Tensor, float]:
    """A rectangle of the other image over 1 − share of the area; returns the share that was really kept."""
    height, width = images.shape[-2:]
    side = math.sqrt(1 - share)
    y, x = (int(rng.integers(n)) for n in (height, width))
    half_y, half_x = round(side * height) // 2, round(side * width) // 2
    top, bottom = max(0, y - half_y), min(height, y + half_y)
    left, right = max(0, x - half_x), min(width, x + half_x)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images[other][..., top:bottom, left:right]
    return mixed, 1 - (bottom - top) * (right - left) / (height * width)

"""Whether training images are mixed (MixUp, CutMix) where labels are unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from manylabel.config import AugmentConfig, Part
from manylabel.labels import UNKNOWN

MOST_UNKNOWN = 0.05  # share of unknown training labels up to which images are mixed


def unknown_is_negative(loss: Part) -> bool:
    """What counts as absent must not make a mixture unknown."""
    return loss.options.get("unknown") == "negative"


def mixing_allowed(a: AugmentConfig, loss: Part, matrix: np.ndarray, say: Callable[[str], None]) -> AugmentConfig:
    """Mixing two images leaves known only what both know: with many unknown labels almost nothing. matrix [n, N]: train"""
    unknown = float((matrix == UNKNOWN).mean())
    if not (a.mixup or a.cutmix) or unknown <= MOST_UNKNOWN or unknown_is_negative(loss):
        return a
    say(f"{unknown:.0%} of the training labels are unknown, so images are not mixed (augment.mixup, cutmix)")
    return replace(a, mixup=0.0, cutmix=0.0)

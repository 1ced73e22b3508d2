"""How a photo becomes the numbers a backbone expects. It belongs to the weights and travels with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manylabel.require import require

INTERPOLATIONS = ("bilinear", "bicubic")
RESIZES = ("stretch", "crop", "pad")


@dataclass(frozen=True)
class Preprocess:
    """Square side, way of getting there, and the normalisation that the backbone applies itself."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str = "bilinear"  # or bicubic
    resize: str = "stretch"  # the whole photo squeezed square; 'crop' = centre; 'pad' = grey bars
    crop_share: float = 0.875  # with 'crop': share of the short side that is kept

    def __post_init__(self) -> None:
        require(1 <= self.size <= 4096, "preprocess.size", self.size, "1 to 4096 pixels")
        for name in ("mean", "std"):
            values = getattr(self, name)
            require(
                len(values) == 3 and all(map(math.isfinite, values)), f"preprocess.{name}", values, "3 finite numbers"
            )
        require(all(value > 0 for value in self.std), "preprocess.std", self.std, "above 0")
        require(
            self.interpolation in INTERPOLATIONS,
            "preprocess.interpolation",
            self.interpolation,
            " or ".join(INTERPOLATIONS),
        )
        require(self.resize in RESIZES, "preprocess.resize", self.resize, " or ".join(RESIZES))
        require(0.05 <= self.crop_share <= 2, "preprocess.crop_share", self.crop_share, "0.05 to 2")

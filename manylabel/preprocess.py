"""How a photo becomes the numbers a backbone expects. It belongs to the weights and travels with them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preprocess:
    """Square side, way of getting there, and the normalisation that the backbone applies itself."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str = "bilinear"  # or bicubic
    resize: str = "stretch"  # the whole photo squeezed square; 'crop' = centre; 'pad' = grey bars
    crop_share: float = 0.875  # with 'crop': share of the short side that is kept

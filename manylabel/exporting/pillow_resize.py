"""Pillow's way from a picture of any size to a square, in torch, so that an exported graph holds it.

Pillow resizes in two passes, each rounded to 8 bits. A pass is a product with a matrix: row i is the filter around the place
that pixel i comes from, as wide as the picture is made smaller, and adds up to 1. Versions before 13 always go across first,
later ones down first where that drops more than twice as many rows as columns (found by trying). The sides of
the picture are tensors here, not numbers, for they stay open in the graph.
"""

from __future__ import annotations

import PIL
import torch
from torch import Tensor

from manylabel.data.transform import GREY
from manylabel.preprocess import Preprocess

PILLOW_13 = int(PIL.__version__.partition(".")[0]) >= 13


def square(image: Tensor, preprocess: Preprocess) -> Tensor:
    """uint8 [H, W, 3] → [1, 3, S, S], whole numbers 0 … 255 as float32: what `evaluation_transform` makes of a picture."""
    down, across = torch.arange(image.shape[0]).double(), torch.arange(image.shape[1]).double()
    height, width = down[-1] + 1, across[-1] + 1
    (top, tall, above, high), (left, wide, before, broad) = _box(height, width, preprocess)
    rows = _weights(down, height, top, tall, above, high, preprocess)  # [S, H]
    columns = _weights(across, width, left, wide, before, broad, preprocess)  # [S, W]
    pixels = image.permute(2, 0, 1).float()  # [3, H, W]
    pixels = torch.where(
        _down_first(height - high, width - broad),
        _eight_bits(_eight_bits(rows @ pixels) @ columns.T),
        _eight_bits(rows @ _eight_bits(pixels @ columns.T)),
    )  # [3, S, S]
    if preprocess.resize == "pad":
        inside = (rows.sum(1) > 0.5)[:, None] & (columns.sum(1) > 0.5)[None]
        pixels = torch.where(inside, pixels, torch.full_like(pixels, GREY))
    return pixels[None]


Side = tuple[
    Tensor, Tensor, Tensor, Tensor
]  # of the picture: from where, how much; of the square: from where, how much


def _down_first(dropped_rows: Tensor, dropped_columns: Tensor) -> Tensor:
    return PILLOW_13 & (dropped_rows > 0) & (dropped_rows > 2 * dropped_columns)


def _box(height: Tensor, width: Tensor, preprocess: Preprocess) -> tuple[Side, Side]:
    """Which part of the picture comes to which part of the square."""
    zero, size = torch.zeros_like(height), torch.full_like(height, preprocess.size)
    if preprocess.resize == "crop":  # ImageOps.fit
        bleed = (1 - preprocess.crop_share) / 2
        bleed = bleed if bleed > 0 else 0.0
        tall, wide = height - 2 * bleed * height, width - 2 * bleed * width
        side = torch.minimum(tall, wide)
        top, left = bleed * height + (tall - side) * 0.5, bleed * width + (wide - side) * 0.5
        return (top, side, zero, size), (left, side, zero, size)
    if preprocess.resize == "pad":  # ImageOps.pad
        high = torch.where(width > height, torch.round(height / width * size), size)
        broad = torch.where(height > width, torch.round(width / height * size), size)
        return (
            (zero, height, torch.round((size - high) * 0.5), high),
            (zero, width, torch.round((size - broad) * 0.5), broad),
        )
    return (zero, height, zero, size), (zero, width, zero, size)


def _weights(
    places: Tensor, side: Tensor, start: Tensor, length: Tensor, before: Tensor, count: Tensor, preprocess: Preprocess
) -> Tensor:
    """How much each of the pixels `places` [n] is in each pixel of the square. [S, n] float32; rows of a border are 0."""
    row = torch.arange(preprocess.size).double() - before  # [S] of what is filled
    scale = length / count
    wide = scale.clamp(min=1)
    centre = start + (row + 0.5) * scale  # [S]
    x = ((places + 0.5 - centre[:, None]) / wide).abs()  # [S, n]
    weights = _bicubic(x) if preprocess.interpolation == "bicubic" else (1 - x).clamp(min=0)
    weights = weights / weights.sum(1, keepdim=True)
    filled = ((row >= 0) & (row < count))[:, None]
    return torch.where(filled, weights, torch.zeros_like(weights)).float()


def _bicubic(x: Tensor) -> Tensor:
    """Keys' cubic with a = -1/2, as Pillow has it."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _eight_bits(x: Tensor) -> Tensor:
    return torch.floor(x + 0.5).clamp(0, 255)

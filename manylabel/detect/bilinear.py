"""Bilinear interpolation along one axis as a matrix: with two of them, A_y M A_xᵀ resamples a map."""

from __future__ import annotations

import torch
from torch import Tensor


def bilinear(place: Tensor, cells: int) -> Tensor:
    """What each cell counts at a place (0 = centre of the first one); beyond the ends, the last one does. [n, k, cells]"""
    number = torch.arange(cells, device=place.device)
    return (1 - (place.clamp(0, cells - 1)[:, :, None] - number).abs()).clamp(min=0)

"""Where a token lies in the image, as sines: what a transformer adds to its keys."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

TEMPERATURE = 10_000


def sine_positions(grids: Sequence[tuple[int, int]], dim: int, like: Tensor) -> Tensor:
    """[T, D] for the tokens of these grids: half of D for the row, half for the column, each from 0 to 2π."""
    return torch.cat([_grid(height, width, dim) for height, width in grids]).to(like)


def _grid(height: int, width: int, dim: int) -> Tensor:
    half = dim // 2
    rows, columns = _waves(height, half), _waves(width, dim - half)
    both = rows[:, None].expand(-1, width, -1), columns[None].expand(height, -1, -1)
    return torch.cat(both, dim=-1).flatten(0, 1)  # [H·W, D]


def _waves(count: int, dim: int) -> Tensor:
    """sin and cos by turns, of falling frequency. [count, dim]"""
    place = 2 * math.pi * torch.arange(1, count + 1) / count
    power = 2 * (torch.arange(dim) // 2) / dim
    angle = place[:, None] / TEMPERATURE**power
    return torch.where(torch.arange(dim) % 2 == 0, angle.sin(), angle.cos())

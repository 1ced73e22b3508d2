"""Small masks laid into their image."""

from __future__ import annotations

import torch
from torch import Tensor

MOST_PIXELS = 2**26  # of float masks at a time: 256 MB


def paste(masks: Tensor, boxes: Tensor, size: tuple[int, int], threshold: float = 0.5) -> Tensor:
    """Probabilities [n, s, s] over their boxes [n, 4] → the pixels of an image of (H, W) above the threshold. [n, H, W] bool

    Bilinear between the centres of the cells: A_y M A_xᵀ.
    """
    height, width = size
    at_once = max(1, MOST_PIXELS // (height * width))
    whole = torch.empty(len(masks), height, width, dtype=torch.bool, device=masks.device)
    with torch.autocast(masks.device.type, enabled=False):
        for first in range(0, len(masks), at_once):
            part = slice(first, first + at_once)
            a_y = _weights(boxes[part, 1], boxes[part, 3], height, masks.shape[1])  # [n, H, s]
            a_x = _weights(boxes[part, 0], boxes[part, 2], width, masks.shape[2])  # [n, W, s]
            whole[part] = a_y @ masks[part].float() @ a_x.transpose(1, 2) > threshold
    return whole


def _weights(start: Tensor, end: Tensor, pixels: int, cells: int) -> Tensor:
    """How much each cell counts at each pixel of one axis; nothing does outside of the box. [n, pixels, cells]"""
    centre = torch.arange(pixels, device=start.device) + 0.5
    share = (centre - start.float()[:, None]) / (end - start).float().clamp(min=1e-6)[:, None]  # 0 … 1 in the box
    inside = (share >= 0) & (share <= 1)
    place = (share * cells - 0.5).clamp(
        0, cells - 1
    )  # 0 = centre of the first cell; beyond the ends, the last one counts
    weight = (1 - (place[:, :, None] - torch.arange(cells, device=place.device)).abs()).clamp(min=0)
    return weight * inside[:, :, None]

"""RoIAlign: what a map shows under a box, as a small square."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.ops import roi_align

from manylabel.detect.bilinear import bilinear

SAMPLES = 2  # points along each side of a cell of the square, whose mean it is
SMALL = (
    40 * 40
)  # cells of a map up to which products are faster on a CPU: 3 to 6 times at 16 × 16, 1.5 times at 40 × 40


def align(map: Tensor, rois: Tensor, side: int, stride: float) -> Tensor:
    """Under the boxes [R, 5] (image, left, top, right, bottom in pixels; images in order). [R, C, side, side] float32"""
    if map.device.type == "cpu" and map.shape[2] * map.shape[3] <= SMALL:
        return align_by_products(map.float(), rois, side, stride)
    return roi_align(map.float(), rois, side, 1 / stride, sampling_ratio=SAMPLES, aligned=True)


def align_by_products(map: Tensor, rois: Tensor, side: int, stride: float) -> Tensor:
    """A_y M A_xᵀ of every box: the same numbers as torchvision's, whose backward is slow on a CPU."""
    _, channels, height, width = map.shape
    counts = torch.bincount(rois[:, 0].long(), minlength=len(map)).tolist()
    a_y = _weights(rois[:, 2] / stride, rois[:, 4] / stride, side, height).split(counts)  # B × [n, s, h]
    a_x = _weights(rois[:, 1] / stride, rois[:, 3] / stride, side, width).split(counts)  # B × [n, s, w]
    crops = []
    with torch.autocast(map.device.type, enabled=False):
        for m, y, x in zip(map, a_y, a_x, strict=True):
            rows = y.flatten(0, 1) @ m.transpose(0, 1).flatten(1)  # [n·s, C·w]
            crops.append(rows.view(len(y), side * channels, width) @ x.transpose(1, 2))  # [n, s·C, s]
    return torch.cat(crops).view(-1, side, channels, side).transpose(1, 2)


def _weights(start: Tensor, end: Tensor, side: int, cells: int) -> Tensor:
    """What each cell of an axis counts for each cell of the square; points beyond the map count nothing. [n, s, cells]"""
    points = (torch.arange(side * SAMPLES, device=start.device) + 0.5) / (side * SAMPLES)
    place = start[:, None] + (end - start)[:, None] * points - 0.5  # [n, s·2]
    inside = (place >= -1) & (place <= cells)
    return (bilinear(place, cells) * inside[:, :, None]).unflatten(1, (side, SAMPLES)).mean(dim=2)

"""Simple feature pyramid (ViTDet): several resolutions out of the one map of a plain vision transformer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from manylabel.detect.region import align

CELLS = 14  # a region is cut from the coarsest level in which it is still so many cells wide (224 pixels at stride 16)


@dataclass(frozen=True, eq=False)
class Levels:
    """Maps of one image batch, finest first, each with the pixels that one of its cells is wide."""

    maps: tuple[Tensor, ...]  # each [B, C, h, w]
    strides: tuple[float, ...]

    def crop(self, boxes: Sequence[Tensor], side: int) -> Tensor:
        """What is under the boxes of every image ([n_b, 4] each), one image after another. [R, C, side, side]"""
        image = torch.repeat_interleave(torch.tensor([len(each) for each in boxes])).to(boxes[0].device)
        corners = torch.cat(list(boxes)).nan_to_num()  # of weights that are no numbers any more: their loss will say so
        rois = torch.cat([image[:, None].float(), corners], dim=1)  # [R, 5]
        reach = (rois[:, 3:] - rois[:, 1:3]).clamp(min=0).prod(dim=1).sqrt()  # √(w h)
        level = torch.log2(reach / (CELLS * self.strides[0]) + 1e-6).floor().clamp(0, len(self.maps) - 1)  # [R]
        places, parts = [], []
        for number, (each, stride) in enumerate(zip(self.maps, self.strides, strict=True)):
            places.append((level == number).nonzero()[:, 0])
            parts.append(align(each, rois[places[-1]], side, stride))
        return torch.cat(parts)[torch.cat(places).argsort()]


class Pyramid(nn.Module):
    """×4 and ×2 by deconvolution, ×1 as it is, ×½ by max-pooling; then 1×1 and 3×3 convolutions to `width` channels."""

    def __init__(self, channels: int, width: int, levels: Sequence[float], patch: int) -> None:
        super().__init__()
        self.strides = tuple(patch / level for level in levels)
        self.levels = nn.ModuleList(nn.Sequential(*_resized(channels, level, width)) for level in levels)

    def forward(self, map: Tensor) -> Levels:
        return Levels(tuple(level(map) for level in self.levels), self.strides)


def _resized(channels: int, level: float, width: int) -> list[nn.Module]:
    steps: list[nn.Module] = []
    for doubling in range(max(0, round(math.log2(level)))):
        if doubling:
            steps += [ChannelNorm(channels), nn.GELU()]
        steps.append(nn.ConvTranspose2d(channels, max(1, channels // 2), kernel_size=2, stride=2))
        channels = max(1, channels // 2)
    if level < 1:
        steps.append(nn.MaxPool2d(round(1 / level), ceil_mode=True))  # a rest at the edge has a cell of its own
    steps += [nn.Conv2d(channels, width, 1, bias=False), ChannelNorm(width)]
    steps += [nn.Conv2d(width, width, 3, padding=1, bias=False), ChannelNorm(width)]
    return steps


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of every place."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

"""The mask head: the pixels of an object in its box."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.ops import roi_align

from manylabel.detect.cascade import Regions
from manylabel.detect.matching import IGNORED
from manylabel.detect.options import DetectorOptions
from manylabel.detect.pyramid import Levels
from manylabel.detect.target import DetectionTarget

SIDE = 14  # cells of a region; its mask has twice as many


class MaskHead(nn.Module):
    """A region → the mask that it has for a label n: w_n · x + b_n, with x from convolutions and a deconvolution (×2)."""

    def __init__(self, o: DetectorOptions, num_labels: int) -> None:
        super().__init__()
        self.num_labels = num_labels
        layers: list[nn.Module] = []
        for number in range(o.mask_layers):
            layers += [nn.Conv2d(o.mask_width if number else o.width, o.mask_width, 3, padding=1), nn.ReLU()]
        channels = o.mask_width if o.mask_layers else o.width
        layers += [nn.ConvTranspose2d(channels, o.mask_width, kernel_size=2, stride=2), nn.ReLU()]
        self.layers, self.label = nn.Sequential(*layers), nn.Linear(o.mask_width, num_labels)
        for layer in layers:
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
                seen = layer.in_channels * (
                    9 if isinstance(layer, nn.Conv2d) else 1
                )  # ×2: each pixel comes from one cell
                nn.init.normal_(layer.weight, std=math.sqrt(2 / seen))
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        nn.init.normal_(self.label.weight, std=0.01)
        nn.init.zeros_(self.label.bias)

    def forward(self, levels: Levels, boxes: Sequence[Tensor], labels: Tensor) -> Tensor:
        """Logits of the mask that each box has for its label. [R, 28, 28]"""
        x = self.layers(levels.crop(boxes, SIDE))  # [R, C, 28, 28]
        w, b = self.label.weight[labels], self.label.bias[labels]  # [R, C], [R]: no map that nobody asks for is made
        return torch.einsum("rchw,rc->rhw", x, w).float() + b[:, None, None]

    def loss(self, levels: Levels, regions: Regions, targets: Sequence[DetectionTarget]) -> Tensor:
        """Mean cross-entropy of the pixels, for the true label of every box on an object whose mask was drawn."""
        drawn = [
            _drawn(labels, objects, target, self.num_labels)
            for labels, objects, target in zip(regions.labels, regions.objects, targets, strict=True)
        ]
        on = regions.take(drawn)
        logits = self(levels, on.boxes, torch.cat(on.labels))
        truth = torch.cat([cut(t, o, b, 2 * SIDE) for t, o, b in zip(targets, on.objects, on.boxes, strict=True)])
        return F.binary_cross_entropy_with_logits(logits, truth, reduction="sum") / max(1, truth.numel())


def cut(target: DetectionTarget, objects: Tensor, boxes: Tensor, side: int) -> Tensor:
    """The true mask of each box's object in that box. [r, side, side]"""
    if target.masks is None or not len(objects):
        return boxes.new_zeros(len(objects), side, side)
    needed, place = objects.unique(return_inverse=True)
    rois = torch.cat([place[:, None].to(boxes), boxes], dim=1)  # [r, 5]
    return roi_align(target.masks[needed, None].float(), rois, side, aligned=True)[:, 0]


def _drawn(labels: Tensor, objects: Tensor, target: DetectionTarget, background: int) -> Tensor:
    """Numbers of the boxes that stand for an object whose mask somebody drew."""
    positive = (labels != background) & (labels != IGNORED)
    if target.masks is None or not len(target):
        return positive.new_zeros(0, dtype=torch.int64)
    return (positive & target.masks.flatten(1).any(dim=1)[objects]).nonzero()[:, 0]

"""Boxes by which a detector's loss is judged: always the same ones for an image, whatever its own proposals are.

While a detector learns, its loss on its own proposals rises: better ones stand for more objects, and a later stage has
more to mend. Losses at two steps can be compared only on the same boxes, and only where they do not depend on the share of
boxes without an object (`cascade.py: naming_loss`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torchvision.ops import box_convert, clip_boxes_to_image

from manylabel.detect.target import DetectionTarget

COPIES = 8  # of every object's box, moved and resized a little
ELSEWHERE = 64  # boxes at random
SHIFT, STRETCH = 0.1, 0.15  # standard deviations, as shares of the sides: overlaps of 0.4 to 1


def yardstick(targets: Sequence[DetectionTarget], size: tuple[int, int]) -> list[Tensor]:
    """Boxes of every image, drawn from torch's generator. B × [n, 4]"""
    return [torch.cat([_near(target), _anywhere(target.boxes, size)]) for target in targets]


def _near(target: DetectionTarget) -> Tensor:
    boxes = target.boxes[~target.ignore].repeat(COPIES, 1)
    centre, sides = box_convert(boxes, "xyxy", "cxcywh").split(2, dim=1)
    moved = centre + SHIFT * sides * torch.randn_like(centre)
    return box_convert(torch.cat([moved, sides * (STRETCH * torch.randn_like(sides)).exp()], dim=1), "cxcywh", "xyxy")


def _anywhere(like: Tensor, size: tuple[int, int]) -> Tensor:
    whole = like.new_tensor([size[1], size[0]])
    sides = whole * 2 ** like.new_empty(ELSEWHERE, 2).uniform_(-4, -1)
    corner = (whole - sides) * torch.rand_like(sides)
    return clip_boxes_to_image(torch.cat([corner, corner + sides], dim=1), size)

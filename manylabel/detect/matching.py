"""Which box stands for which object, and which boxes are learned from."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.ops import box_area, box_iou

from manylabel.detect.target import DetectionTarget

SHARE = 0.25  # of the boxes that are learned from, at most, on objects
IGNORED = -100  # the label of a box that nothing is learned from; cross-entropy leaves it out


def covered(boxes: Tensor, target: DetectionTarget) -> Tensor:
    """Whether more than half of a box lies in one ignored object. [R] bool"""
    ignored = target.boxes[target.ignore]  # [g, 4]
    corner = torch.maximum(boxes[:, None, :2], ignored[:, :2])  # [R, g, 2]
    shared = (torch.minimum(boxes[:, None, 2:], ignored[:, 2:]) - corner).clamp(min=0).prod(dim=2)  # [R, g]
    return (shared > box_area(boxes)[:, None] / 2).any(dim=1)


def match(boxes: Tensor, target: DetectionTarget, threshold: float, background: int) -> tuple[Tensor, Tensor]:
    """(label [R], object [R]) of every box: that of the object it overlaps most, if by `threshold` (IoU) or more.

    Else the label is `background`, or IGNORED where the box lies in an ignored object; the object then means nothing.
    """
    real = (~target.ignore).nonzero()[:, 0]  # [m]
    labels = torch.where(covered(boxes, target), IGNORED, background)
    if not len(real) or not len(boxes):
        return labels, torch.zeros_like(labels)
    overlap, best = box_iou(boxes, target.boxes[real]).max(dim=1)  # [R]
    objects = real[best]
    return torch.where(overlap >= threshold, target.labels[objects], labels), objects


def sample(labels: Tensor, background: int, count: int, share: float = SHARE) -> Tensor:
    """Numbers of at most `count` boxes drawn by chance, at most this share of them on objects. [r]"""
    positive = _shuffled((labels != background) & (labels != IGNORED))[: int(count * share)]
    negative = _shuffled(labels == background)[: count - len(positive)]
    return torch.cat([positive, negative])


def _shuffled(which: Tensor) -> Tensor:
    found = which.nonzero()[:, 0]
    return found[torch.randperm(len(found), device=found.device)]

"""Boxes and masks from the one map of a plain vision transformer: ViTDet's pyramid with Cascade Mask R-CNN on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.detect.cascade import Cascade
from manylabel.detect.mask import MaskHead
from manylabel.detect.matching import SHARE
from manylabel.detect.options import DetectorOptions
from manylabel.detect.proposals import Proposals
from manylabel.detect.pyramid import Levels, Pyramid
from manylabel.detect.target import Detections, DetectionTarget, check_targets
from manylabel.detect.yardstick import yardstick
from manylabel.features import FINAL, Features

RARE = 1e-3  # objects of a label in an image, at least
ANCHORS_OF_OBJECT = 2  # that stand for one object, about


class Detector(nn.Module):
    """map → pyramid → proposals → boxes, stage by stage → masks.

    With targets it gives the losses, without them what it found. In evaluation mode the losses are the same every time, and
    of the same boxes whatever the weights are, and labels are judged among each other: they can be compared over time.
    """

    Options = DetectorOptions
    stages = (FINAL,)
    pooled = False
    adapts = False
    gates = None

    def __init__(
        self, options: DetectorOptions, *, channels: Mapping[str, int], num_labels: int, stride: int = 16
    ) -> None:
        """`stride`: pixels of an image for each place of the map."""
        super().__init__()
        self.options, self.stride, self.num_labels = options, stride, num_labels
        self.pyramid = Pyramid(channels[FINAL], options.width, options.levels, stride)
        self.proposals = Proposals(options)
        self.cascade = Cascade(options, num_labels)
        self.mask = MaskHead(options, num_labels) if options.masks else None

    def forward(
        self, features: Features, targets: Sequence[DetectionTarget] | None = None, trace: Trace | None = None
    ) -> Output:
        """Losses by name where there are targets, else the detections of every image."""
        assert features.size is not None
        if targets is not None:
            return Output(losses=self.losses(features.final, features.size, targets))
        return Output(self.find(features.final, features.size))

    @torch.no_grad()
    def expect(self, objects: Tensor) -> None:
        """Begin with scores for as many objects of each label as an image has (`objects` [N]).

        Most boxes show nothing. A detector that begins with even scores learns this first, and does so by making all
        features alike, from which it takes hundreds of steps to recover. The share of boxes on objects is known before.
        """
        o = self.options
        objects = objects.clamp(min=RARE)
        on_objects = objects / o.box_samples
        self.cascade.expect(on_objects * (SHARE / on_objects.sum()).clamp(max=1))
        share = (ANCHORS_OF_OBJECT * objects.sum() / o.anchor_samples).clamp(max=0.5)
        self.proposals.head.cls_logits.bias.fill_(torch.logit(share).item())

    def losses(self, map: Tensor, size: tuple[int, int], targets: Sequence[DetectionTarget]) -> dict[str, Tensor]:
        """rpn_objectness, rpn_box, cls_1, box_1, … of each stage, and mask: scalars."""
        check_targets(targets, len(map), size, self.num_labels)
        levels = self._levels(map, size)
        with _chance(map.device, free=self.training):
            proposals, losses = self.proposals(levels, size, targets)
            if not self.training:
                proposals = yardstick(targets, size)
            of_boxes, regions = self.cascade.losses(levels, size, proposals, targets)
        losses |= of_boxes
        if self.mask is not None:
            losses["mask"] = self.mask.loss(levels, regions, targets)
        return losses

    def find(self, map: Tensor, size: tuple[int, int]) -> list[Detections]:
        levels = self._levels(map, size)
        proposals, _ = self.proposals(levels, size)
        found = self.cascade.find(levels, size, proposals)
        if self.mask is None:
            return found
        masks = self.mask(levels, [each.boxes for each in found], torch.cat([each.labels for each in found])).sigmoid()
        parts = masks.split([len(each) for each in found])
        return [replace(each, masks=part) for each, part in zip(found, parts, strict=True)]

    def at_most(self, map: Tensor, size: tuple[int, int]) -> None:
        """The passes of `find` with as many boxes as there can be, to count what they cost."""
        levels = self._levels(map, size)
        self.proposals(levels, size)
        boxes = map.new_tensor([[0, 0, size[1], size[0]]])
        self.cascade.find(levels, size, [boxes.expand(self.options.test_proposals, 4)])
        if self.mask is not None:
            most = self.options.most
            self.mask(levels, [boxes.expand(most, 4)], torch.zeros(most, dtype=torch.int64, device=map.device))

    def _levels(self, map: Tensor, size: tuple[int, int]) -> Levels:
        cells = tuple(-(-side // self.stride) for side in size)
        if map.shape[2:] != cells:
            raise ValueError(
                f"a map of {tuple(map.shape[2:])} places for an image of {size} pixels; a stride of {self.stride} gives "
                f"{cells}"
            )
        return self.pyramid(map)


@contextmanager
def _chance(device: torch.device, free: bool) -> Iterator[None]:
    """Which boxes are learned from is drawn; for judging always in the same way, and leaving the generators alone."""
    if free:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        yield

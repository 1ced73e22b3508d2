"""Region proposals: boxes in which some object may be, whatever its label."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from torchvision.models.detection.rpn import RegionProposalNetwork, RPNHead, concat_box_prediction_layers

from manylabel.detect.matching import covered
from manylabel.detect.options import DetectorOptions
from manylabel.detect.pyramid import Levels
from manylabel.detect.target import DetectionTarget

POSITIVE, NEGATIVE = 0.7, 0.3  # overlap from which an anchor stands for an object, and below which for none
SMOOTH = 1 / 9  # where the box loss turns from squared to absolute


class Proposals(RegionProposalNetwork):
    """torchvision's network with anchors around the centres of the cells, ignored objects, and all boxes in float32."""

    def __init__(self, o: DetectorOptions) -> None:
        super().__init__(
            None,  # anchors depend on the size of the image: see `anchors`
            RPNHead(o.width, len(o.ratios)),
            fg_iou_thresh=POSITIVE,
            bg_iou_thresh=NEGATIVE,
            batch_size_per_image=o.anchor_samples,
            positive_fraction=0.5,
            pre_nms_top_n={"training": 2 * o.proposals, "testing": 2 * o.test_proposals},  # of each level
            post_nms_top_n={"training": o.proposals, "testing": o.test_proposals},
            nms_thresh=o.proposal_nms,
        )
        self.sides, self.ratios = o.anchors, o.ratios

    def forward(
        self, levels: Levels, size: tuple[int, int], targets: Sequence[DetectionTarget] | None = None
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Boxes of every image ([P, 4] each, best first), and with targets the losses."""
        scores, codes = self.head(levels.maps)
        counts = [score[0].numel() for score in scores]
        score, code = (x.float() for x in concat_box_prediction_layers(scores, codes))  # [B·A, 1], [B·A, 4]
        anchors = [self.anchors(levels, size)] * len(levels.maps[0])  # B × [A, 4]
        boxes = self.box_coder.decode(code.detach(), anchors).view(len(anchors), -1, 4)
        found, _ = self.filter_proposals(boxes, score, [size] * len(anchors), counts)
        if targets is None:
            return found, {}
        labels, truth = self.assign_targets_to_anchors(anchors, targets)
        return found, self.compute_loss(score.flatten(), code, labels, self.box_coder.encode(truth, anchors))

    def anchors(self, levels: Levels, size: tuple[int, int]) -> Tensor:
        """The anchors of all levels, in the order in which the head speaks of them. [A, 4]"""
        sides = self.sides or [max(size) / 2 ** (len(levels.maps) - number) for number in range(len(levels.maps))]
        per_level = zip(levels.maps, levels.strides, sides, strict=True)
        return torch.cat([grid_anchors(each, stride, side, self.ratios) for each, stride, side in per_level])

    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: Sequence[DetectionTarget]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Label (1, 0, or −1 = not learned from) and true box of every anchor of every image."""
        labels, boxes = super().assign_targets_to_anchors(anchors, [{"boxes": t.boxes[~t.ignore]} for t in targets])
        for label, anchor, target in zip(labels, anchors, targets, strict=True):
            label[(label == 0) & covered(anchor, target)] = -1
        return labels, boxes

    def compute_loss(
        self, score: Tensor, code: Tensor, labels: list[Tensor], codes: Sequence[Tensor]
    ) -> dict[str, Tensor]:
        """Over some anchors of every image; 0 where none may be learned from."""
        chosen = [torch.cat(each).bool() for each in self.fg_bg_sampler(labels)]
        positive, either = chosen[0], chosen[0] | chosen[1]
        count = either.sum().clamp(min=1)
        objectness = F.binary_cross_entropy_with_logits(score[either], torch.cat(labels)[either], reduction="sum")
        box = F.smooth_l1_loss(code[positive], torch.cat(list(codes))[positive], beta=SMOOTH, reduction="sum")
        return {"rpn_objectness": objectness / count, "rpn_box": box / count}


def grid_anchors(map: Tensor, stride: float, side: float, ratios: Sequence[float]) -> Tensor:
    """Boxes of side² pixels with every height : width, around the centre of every cell of a map. [h·w·r, 4]"""
    root = torch.tensor(ratios, device=map.device).sqrt()
    half = side / 2 * torch.stack([1 / root, root], dim=1)  # [r, 2]
    y, x = ((torch.arange(cells, device=map.device) + 0.5) * stride for cells in map.shape[-2:])
    centre = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)[:, :, None]  # [h, w, 1, 2]
    return torch.cat([centre - half, centre + half], dim=-1).reshape(-1, 4)

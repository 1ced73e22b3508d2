"""Cascade R-CNN: box heads one after another, each trained for better boxes than the one before it.

b_t+1 = decode(f_t(x, b_t), b_t)   with IoU thresholds 0.5, 0.6, 0.7; one stage is the head of Faster R-CNN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchvision.ops import batched_nms, clip_boxes_to_image

from manylabel.detect.box_code import Weights, decode, encode
from manylabel.detect.matching import IGNORED, match, sample
from manylabel.detect.options import DetectorOptions
from manylabel.detect.pyramid import Levels
from manylabel.detect.target import Detections, DetectionTarget

OVERLAPS = (0.5, 0.6, 0.7)  # from which a box stands for an object, stage by stage
CODES: tuple[Weights, ...] = ((10, 10, 5, 5), (20, 20, 10, 10), (30, 30, 15, 15))  # later stages have less to mend
SMOOTH = 1 / 9  # where the box loss turns from squared to absolute
SIDE = 7  # cells of a region


@dataclass(frozen=True, eq=False)
class Regions:
    """Boxes of a batch and what each stands for; a list has one entry for each image."""

    boxes: list[Tensor]  # [n_b, 4]
    labels: list[Tensor]  # [n_b] int64: a label, the number of labels = background, or IGNORED
    objects: list[Tensor]  # [n_b] int64: number in the image's target, where the label is one

    @classmethod
    def matched(
        cls, boxes: list[Tensor], targets: Sequence[DetectionTarget], overlap: float, background: int
    ) -> Regions:
        pairs = [match(each, target, overlap, background) for each, target in zip(boxes, targets, strict=True)]
        return cls(boxes, [labels for labels, _ in pairs], [objects for _, objects in pairs])

    def take(self, which: Sequence[Tensor]) -> Regions:
        return Regions(
            *([x[w] for x, w in zip(each, which, strict=True)] for each in (self.boxes, self.labels, self.objects))
        )


class BoxHead(nn.Module):
    """A region → scores of the labels and of background (last), and one code of a better box for all labels.

    Layers are normalised, as ViTDet's are: without it a detector hardly begins from scratch.
    """

    def __init__(self, width: int, hidden: int, num_labels: int) -> None:
        super().__init__()
        first, second = nn.Linear(width * SIDE * SIDE, hidden), nn.Linear(hidden, hidden)
        norms = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.layers = nn.Sequential(nn.Flatten(), first, norms[0], nn.ReLU(), second, norms[1], nn.ReLU())
        self.label, self.box = nn.Linear(hidden, num_labels + 1), nn.Linear(hidden, 4)
        for layer in (first, second):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.normal_(self.label.weight, std=0.01)
        nn.init.normal_(self.box.weight, std=0.001)
        for layer in (first, second, self.label, self.box):
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layers(x)  # [R, D]
        return self.label(x).float(), self.box(x).float()  # [R, N + 1], [R, 4]


class Cascade(nn.Module):
    """The box heads of all stages."""

    def __init__(self, o: DetectorOptions, num_labels: int) -> None:
        super().__init__()
        self.options, self.num_labels = o, num_labels
        self.heads = nn.ModuleList(BoxHead(o.width, o.box_hidden, num_labels) for _ in range(o.stages))

    def losses(
        self, levels: Levels, size: tuple[int, int], proposals: list[Tensor], targets: Sequence[DetectionTarget]
    ) -> tuple[dict[str, Tensor], Regions]:
        """The losses of every stage, and what the last one learned from; in evaluation mode all have the same boxes."""
        with_truth = [torch.cat([p, t.boxes[~t.ignore]]) for p, t in zip(proposals, targets, strict=True)]
        regions = Regions.matched(with_truth, targets, OVERLAPS[0], self.num_labels)
        regions = regions.take([sample(labels, self.num_labels, self.options.box_samples) for labels in regions.labels])
        losses: dict[str, Tensor] = {}
        for number, head in enumerate(self.heads):
            scores, code = head(self._equal_say(levels.crop(regions.boxes, SIDE)))
            of_labels, of_boxes = stage_losses(scores, code, regions, targets, CODES[number])
            if not self.training:
                of_labels = naming_loss(scores, regions)
            losses |= {f"cls_{number + 1}": of_labels, f"box_{number + 1}": of_boxes}
            if number + 1 < len(self.heads):
                better = regions.boxes
                if self.training:
                    better = self._better(code.detach(), better, CODES[number], size)
                regions = Regions.matched(better, targets, OVERLAPS[number + 1], self.num_labels)
        return losses, regions

    @torch.no_grad()
    def expect(self, share: Tensor) -> None:
        """Begin with scores as if this share [N] of all regions stood for each label, and the others for nothing."""
        for head in self.heads:
            assert isinstance(head, BoxHead)
            head.label.bias.copy_(torch.cat([share, (1 - share.sum()).view(1)]).log())

    def find(self, levels: Levels, size: tuple[int, int], boxes: list[Tensor]) -> list[Detections]:
        """Boxes of the last stage with the mean over all stages of their labels' probabilities."""
        total = torch.zeros((), device=boxes[0].device)
        for head, weights in zip(self.heads, CODES, strict=False):
            scores, code = head(levels.crop(boxes, SIDE))
            boxes = self._better(code, boxes, weights, size)
            total = total + scores.softmax(dim=1)  # [R, N + 1]
        mean = (total / len(self.heads))[:, : self.num_labels].split([len(each) for each in boxes])
        return [select(each, scores, self.options) for each, scores in zip(boxes, mean, strict=True)]

    def _equal_say(self, x: Tensor) -> Tensor:
        """Every stage changes what all of them read, so each has its share of the gradient."""
        share = 1 / len(self.heads)
        return share * x + (1 - share) * x.detach()

    def _better(self, code: Tensor, boxes: list[Tensor], weights: Weights, size: tuple[int, int]) -> list[Tensor]:
        better = clip_boxes_to_image(decode(code, torch.cat(boxes), weights), size)
        return list(better.split([len(each) for each in boxes]))


def stage_losses(
    scores: Tensor, code: Tensor, regions: Regions, targets: Sequence[DetectionTarget], weights: Weights
) -> tuple[Tensor, Tensor]:
    """(cross-entropy of the labels, smooth L1 of the boxes on objects), each over all regions that are learned from."""
    background = scores.shape[1] - 1
    labels, boxes = torch.cat(regions.labels), torch.cat(regions.boxes)  # [R], [R, 4]
    count = (labels != IGNORED).sum().clamp(min=1)
    label_loss = F.cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum") / count
    positive = [(each != background) & (each != IGNORED) for each in regions.labels]
    truth = torch.cat([t.boxes[o[p]] for t, o, p in zip(targets, regions.objects, positive, strict=True)])  # [P, 4]
    chosen = torch.cat(positive)
    box_loss = F.smooth_l1_loss(code[chosen], encode(truth, boxes[chosen], weights), beta=SMOOTH, reduction="sum")
    return label_loss, box_loss / count


def naming_loss(scores: Tensor, regions: Regions) -> Tensor:
    """Cross-entropy of the labels among each other, of boxes on objects: what does not depend on how many others there are.

    How sure a head is of background follows from its share of boxes in training, which changes with the proposals: at one
    step's share on another step's boxes a better head can have the higher loss. Whether there is an object at all is judged
    by the loss of the proposals.
    """
    labels, background = torch.cat(regions.labels), scores.shape[1] - 1
    on_object = (labels != background) & (labels != IGNORED)
    loss = F.cross_entropy(scores[on_object, :background], labels[on_object], reduction="sum")
    return loss / on_object.sum().clamp(min=1)


def select(boxes: Tensor, scores: Tensor, o: DetectorOptions) -> Detections:
    """The best of an image's boxes [R, 4] and scores [R, N]; of two of one label that overlap, the better one."""
    has_area = (boxes[:, 2:] > boxes[:, :2]).all(dim=1)
    region, label = ((scores > o.score) & has_area[:, None]).nonzero().unbind(dim=1)
    score = scores[region, label]
    best = batched_nms(boxes[region], score, label, o.nms)[: o.most]
    return Detections(boxes[region[best]], label[best], score[best])

"""backbone → neck → head. The whole model is this line."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from manylabel.backbone import Backbone
from manylabel.config import Config
from manylabel.features import Features
from manylabel.head import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.neck import NECKS


class Model(nn.Module):
    """images [B, 3, H, W] → logits [B, N]; features that were computed before may come in place of the images."""

    def __init__(
        self, config: Config, num_labels: int, load_weights: bool = True, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__()
        self.backbone = Backbone(config.backbone, load_weights)
        self.neck = NECKS.build(config.neck, channels=self.backbone.channels)
        self.head: Head = HEADS.build(
            config.head, channels=self.neck.channels, num_labels=num_labels, knowledge=knowledge
        )
        self.backbone.select({*self.neck.stages, *self.head.stages})

    @property
    def pooled(self) -> bool:
        """Whether spatial means are all that neck and head look at."""
        return self.neck.pooled and self.head.pooled

    def features(self, images: Tensor) -> Features:
        """What neck and head need of these images, pooled to 1×1 where that loses nothing."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.backbone.frozen):
            features = self.backbone(images)
        if not self.pooled:
            return features
        return Features(
            {name: m.mean(dim=(2, 3), keepdim=True) for name, m in features.stages.items()}, features.prefix
        )

    def forward(self, inputs: Tensor | Features) -> Tensor:
        features = inputs if isinstance(inputs, Features) else self.features(inputs)
        return self.head(self.neck(features))

    def take_extra_costs(self) -> Tensor | None:
        """[B, R] of the last training pass, where the head has such costs; given once."""
        costs, self.head.extra_costs = self.head.extra_costs, None
        return costs

    @torch.no_grad()
    def multiply_adds(self) -> int:
        """Of one image, from the pixels to the logits (torch counts two operations for each)."""
        size, training = self.backbone.preprocess.size, self.training
        example = next(self.parameters()).new_zeros(1, 3, size, size)
        self.eval()
        with FlopCounterMode(display=False) as counter:
            self.head(self.neck(self.backbone(example)))
        self.train(training)
        return counter.get_total_flops() // 2

    def parameter_counts(self) -> tuple[int, int]:
        """(all, trained)"""
        sizes = [(p.numel(), p.requires_grad) for p in self.parameters()]
        return sum(n for n, _ in sizes), sum(n for n, trained in sizes if trained)

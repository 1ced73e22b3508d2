"""backbone → neck → head. The whole model is this line."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from manylabel.backbone import Backbone
from manylabel.config import Config
from manylabel.error import ConfigError
from manylabel.features import ENTRY, FINAL, Features
from manylabel.head import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.neck import NECKS, Neck


class Model(nn.Module):
    """images [B, 3, H, W] → logits [B, N]; features that were computed before may come in place of the images."""

    def __init__(
        self, config: Config, num_labels: int, load_weights: bool = True, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__()
        self.backbone = Backbone(config.backbone, load_weights)
        self.neck: Neck = NECKS.build(config.neck, channels=self.backbone.channels, num_labels=num_labels)
        self.head: Head = HEADS.build(
            config.head, channels=self.neck.channels, num_labels=num_labels, knowledge=knowledge
        )
        self.backbone.select(self.neck.reads(self.head.stages))
        if self.head.zero_shot and not self.neck.same_for_all_labels:
            raise ConfigError(
                "neck.share=label learns something for each label, so it does not go with a zero-shot head"
            )

    @property
    def pooled(self) -> frozenset[str]:
        """The stages of which neck and head look at nothing but the mean over all places. A head that looks at places
        measures its grids by that of the final stage."""
        mapped = self.neck.mapped if self.head.pooled else self.neck.mapped | {*self.head.stages, FINAL}
        kept = self.backbone.stages if self.backbone.cut is None else self.backbone.before_cut
        return frozenset(kept) - mapped

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What `features` gives, in order."""
        backbone = self.backbone
        return backbone.stages if backbone.cut is None else (*backbone.before_cut, ENTRY)

    def features(self, images: Tensor) -> Features:
        """What a cache may hold: everything that training does not change, as small as neck and head allow."""
        if self.backbone.cut is not None:
            return self._small(self.backbone.enter(images))
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.backbone.frozen):
            features = self.backbone(images)
        return self._small(features)

    def _small(self, features: Features) -> Features:
        pooled = self.pooled
        small = {k: m.mean(dim=(2, 3), keepdim=True) if k in pooled else m for k, m in features.stages.items()}
        return Features(small, features.prefix)

    def logits(self, inputs: Tensor | Features) -> Tensor:
        """What forward gives; mixed precision, which a trainer wraps around forward, stays outside."""
        if isinstance(inputs, Features):
            features = self.backbone.go_on(inputs) if ENTRY in inputs.stages else inputs
        else:
            features = self.backbone(inputs) if self.backbone.cut is not None else self.features(inputs)
        return self.neck.logits(self.head, features)

    def forward(self, inputs: Tensor | Features) -> Tensor:
        return self.logits(inputs)

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
            self.neck.logits(self.head, self.backbone(example))
        self.train(training)
        return counter.get_total_flops() // 2

    def rates(self, options: Any) -> dict[str, float]:
        """The backbone's rates as shares of the head's: earlier layers may learn more slowly (optimiser options)."""
        depth = self.backbone.layer_groups()
        deepest = max(depth.values())
        return {
            f"backbone.body.{name}": options.backbone_rate * options.layer_decay ** (deepest - group)
            for name, group in depth.items()
        }

    def parameter_counts(self) -> tuple[int, int]:
        """(all, trained)"""
        sizes = [(p.numel(), p.requires_grad) for p in self.parameters()]
        return sum(n for n, _ in sizes), sum(n for n, trained in sizes if trained)

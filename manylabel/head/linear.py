"""Global average pooling and one linear layer: the reference every other head is measured against.

With `attention` every label also looks at the places that speak most for it: the weights are the label's own scores at
each place (class-specific residual attention), so there is nothing more to learn, and λ = 0 is the plain head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from manylabel.config import option
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.features import FINAL, Features
from manylabel.head.base import HEADS, NOTHING, Head, HeadOptions, LabelKnowledge
from manylabel.head.prior import Prior
from manylabel.require import require


@HEADS.register("linear")
class Linear(Head):
    """l = W z + b with z the spatial mean of the last stage (ML-Decoder, section 2.1); with attention, of label n:
    l_n = mean_p s_pn + λ Σ_p softmax_p(τ s_pn) s_pn with s_p = W x_p + b of every place p."""

    @dataclass(frozen=True)
    class Options(HeadOptions):
        dropout: float = option(0.0, "dropout on the feature")
        attention: float = option(
            0.0, "λ: how much a label's most telling places count beside the mean; 0 = not at all"
        )
        sharpness: float = option(1.0, "τ of that attention; the higher, the fewer places count")

        def __post_init__(self) -> None:
            require(0 <= self.dropout < 1, "head.dropout", self.dropout, "at least 0 and below 1")
            require(self.attention >= 0, "head.attention", self.attention, "0 or more")
            require(self.sharpness > 0, "head.sharpness", self.sharpness, "above 0")

    def __init__(
        self, options: Options, *, channels: Mapping[str, int], num_labels: int, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        self.pooled = options.attention == 0
        self.dropout = nn.Dropout(options.dropout)
        self.classifier = nn.Linear(channels[FINAL], num_labels)
        nn.init.normal_(self.classifier.weight, std=0.01)
        nn.init.zeros_(self.classifier.bias)

    @torch.no_grad()
    def expect(self, prior: Prior) -> None:
        self.classifier.bias.copy_(
            prior.labels / (1 + self.options.attention)
        )  # b stands in the mean and in the attention

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        if self.pooled:
            z = features.final.mean(dim=(2, 3))  # [B, C]
            return Output(self.classifier(self.dropout(z)))  # [B, N]
        scores = self.classifier(self.dropout(features.tokens()))  # s: [B, P, N]
        weights = torch.softmax(self.options.sharpness * scores.float(), dim=1)
        return Output(scores.mean(dim=1) + self.options.attention * (weights * scores).sum(dim=1))

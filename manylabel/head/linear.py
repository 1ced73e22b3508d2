"""Global average pooling and one linear layer: the reference every other head is measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from manylabel.config import option
from manylabel.features import FINAL, Features
from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.require import require


@HEADS.register("linear")
class Linear(Head):
    """l = W z + b with z the spatial mean of the last stage (ML-Decoder, section 2.1)."""

    pooled = True

    @dataclass(frozen=True)
    class Options:
        dropout: float = option(0.0, "dropout on the pooled feature")

        def __post_init__(self) -> None:
            require(0 <= self.dropout < 1, "head.dropout", self.dropout, "at least 0 and below 1")

    def __init__(
        self, options: Options, *, channels: Mapping[str, int], num_labels: int, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        self.dropout = nn.Dropout(options.dropout)
        self.classifier = nn.Linear(channels[FINAL], num_labels)
        nn.init.normal_(self.classifier.weight, std=0.01)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, features: Features) -> Tensor:
        z = features.final.mean(dim=(2, 3))  # [B, C]
        return self.classifier(self.dropout(z))  # [B, N]

"""Our heads for people's own code: a timm model in, the same model with one of our heads out.

import timm
from manylabel import heads

model = heads.attach(timm.create_model("resnet50", pretrained=True), "ml_decoder", num_labels=80)
logits = model(images)  # [B, 80]; images normalised as the timm model wants them
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from manylabel.backbone.stages import StageReader
from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.head import HEADS, Head, LabelKnowledge
from manylabel.model import answer_of, build_neck
from manylabel.neck import Neck


class WithHead(nn.Module):
    """images [B, 3, H, W], normalised → logits [B, N]"""

    def __init__(self, body: nn.Module, neck: Neck, head: Head, reader: StageReader) -> None:
        super().__init__()
        self.body = body
        self.neck = neck
        self.head = head
        self._reader = reader
        self._stages = reader.select(neck.reads(head.stages))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = answer_of(self.neck, self.head, self._reader.read(images, self._stages)).logits
        return logits


def attach(
    model: Any,
    head: str,
    num_labels: int,
    *,
    vectors: np.ndarray | None = None,
    neck: Part | str = "none",
    **options: Any,
) -> WithHead:
    """`model` (any timm model) with this head in place of its classifier, which is taken off. Options are the head's own.

    `vectors` [N, d]: text vectors of the labels, for heads that work with words. `neck`: what mixes earlier stages in.
    """
    if num_labels < 1:
        raise ConfigError(f"num_labels must be 1 or more, not {num_labels}")
    if not hasattr(model, "forward_features") or not hasattr(model, "num_features"):
        raise ConfigError(f"{type(model).__name__} is no timm model (it has no forward_features)")
    if hasattr(model, "reset_classifier"):
        model.reset_classifier(0)
    reader = StageReader(model, type(model).__name__)
    before = build_neck(Part(neck) if isinstance(neck, str) else neck, reader, num_labels)
    built: Head = HEADS.build(
        Part(head, options), channels=before.channels, num_labels=num_labels, knowledge=LabelKnowledge(vectors)
    )
    first = next(model.parameters(), None)
    if first is not None:
        before, built = before.to(first.device, first.dtype), built.to(first.device, first.dtype)
    return WithHead(model, before, built, reader)


def names() -> list[str]:
    """The heads there are."""
    return HEADS.names()


__all__ = ["WithHead", "attach", "names"]

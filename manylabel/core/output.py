"""What one forward pass gives: the answer, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

if TYPE_CHECKING:
    from manylabel.detect import Detections

NO_LOSSES: Mapping[str, Tensor] = {}


class Output(NamedTuple):
    """`Head.forward` and `Model.forward` give this."""

    answer: Tensor | list[Detections] | None = None  # logits [B, N]; or what was found in every image
    losses: Mapping[str, Tensor] = NO_LOSSES  # the task's own, where the head must make them (a detector samples boxes)
    extra: Tensor | None = None  # [B, R]: costs beside the labels', in training; each weighs as much as a label
    costs: Mapping[str, Tensor] = NO_LOSSES  # of the shared network (balance of routers, own layers)

    @property
    def logits(self) -> Tensor:
        """The answer of a head that gives a number for each label. [B, N]"""
        assert isinstance(self.answer, Tensor)
        return self.answer

    @property
    def detections(self) -> list[Detections]:
        """The answer of a detector, image by image."""
        assert isinstance(self.answer, list)
        return self.answer

"""The full form: an image uint8 [H, W, 3] → its pixels as the network sees them, logits, scores, and what is present."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from manylabel.bundle import TaskBundle
from manylabel.core.per_task import PerTask
from manylabel.engine.outputs import Outputs
from manylabel.exporting.pillow_resize import square
from manylabel.exporting.plain import output_name

WHAT = ("pixels", "logits", "scores", "present")


class FullOutputs(Outputs):
    what = "predictions"
    free = {0: "height", 1: "width"}

    def __init__(self, bundles: Mapping[str, TaskBundle]) -> None:
        super().__init__()
        self.bundles = dict(bundles)
        self.paths = PerTask({name: one.model for name, one in bundles.items()})
        for i, one in enumerate(bundles.values()):
            self.register_buffer(f"thresholds{i}", torch.from_numpy(one.thresholds).double(), persistent=False)
        self.names = tuple(output_name(what, name, len(bundles) == 1) for name in bundles for what in WHAT)

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        (image,) = inputs.values()
        found: list[Tensor] = []
        for i, (name, one) in enumerate(self.bundles.items()):
            pixels = square(image, one.preprocess)  # [1, 3, S, S]
            logits = self.paths[name](pixels / 255).logits  # the backbone normalises
            scores = torch.softmax(logits, 1) if one.task.activation == "softmax" else torch.sigmoid(logits)
            present = scores.double() >= getattr(self, f"thresholds{i}")
            if one.task.one_label:
                present = torch.arange(scores.shape[1]) == scores.argmax(1, keepdim=True)
            found += [pixels.to(torch.uint8), logits, scores, present]
        return tuple(found)

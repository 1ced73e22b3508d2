"""What of a model is computed, by name, and how much of it another engine may get wrong."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from manylabel.backbone import Backbone
from manylabel.features import FINAL, Features
from manylabel.model import TaskModel

PIXELS = "pixels"


class Outputs(nn.Module):
    """Named tensors in, a tensor for each of `names` out."""

    what: str
    names: tuple[str, ...]
    tolerance = 1e-4  # largest difference to torch's
    relative = False  # of the largest number of the same output
    free: Mapping[int, str] = {0: "batch"}  # dimensions of the inputs that may have any size

    def gap(self, ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> float:
        """Largest difference of any output; not a number where one is not."""
        return float(np.max([self._gap(ours[name], theirs[name]) for name in self.names]))

    def _gap(self, ours: np.ndarray, theirs: np.ndarray) -> float:
        with np.errstate(invalid="ignore", over="ignore"):
            difference = float(np.abs(ours - theirs).max())
        size = float(np.abs(theirs).max()) if self.relative else 0.0
        return difference / size if size else difference


class FeatureOutputs(Outputs):
    """A model's features, as the cache keeps them: chosen stages, also up to a cut."""

    what = "features"
    tolerance = 1e-3
    relative = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__()
        self.model = on(model, model.backbone.laid_out(torch.channels_last))  # no backward pass here would mind
        self.names = model.feature_names

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        stages = self.model.features(inputs[PIXELS]).stages
        return tuple(stages[name] for name in self.names)


class LogitOutputs(Outputs):
    """A model's logits [B, N], for predictions."""

    what = "logits"
    names = ("logits",)

    def __init__(self, model: TaskModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        return (self.model(inputs[PIXELS]).logits,)


class HeadOutputs(Outputs):
    """A head's logits [B, N], from its stages' maps by name.

    `final` is always among them: how fine an earlier stage may be is measured by it.
    """

    what = "logits"
    names = ("logits",)

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head
        self.stages = tuple(dict.fromkeys((*head.stages, FINAL)))  # type: ignore[misc]

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        return (self.head(Features(inputs)).logits,)


def on(model: TaskModel, backbone: Backbone) -> TaskModel:
    """The same neck and head on another backbone."""
    other = copy.copy(model)
    other._modules = {**model._modules, "backbone": backbone}
    return other

"""A stage's map and the gradients of labels' logits with respect to it, for a whole batch in as many passes as labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from manylabel.backbone import Backbone
from manylabel.error import ConfigError
from manylabel.features import FINAL, Features
from manylabel.model import TaskModel


@dataclass(frozen=True)
class StageMap:
    """What class activation maps are made of."""

    a: Tensor  # [B, C, H, W]
    gradient: Callable[[Tensor], Tensor]  # columns [B] → ∂ logits[b, columns[b]] / ∂ a[b], for all b at once


def final_map(model: TaskModel, features: Features) -> StageMap:
    """At the end of the backbone: only neck and head are passed backwards."""
    maps = {name: values.detach().contiguous() for name, values in features.stages.items()}
    leaf = maps[FINAL] = maps[FINAL].requires_grad_()
    with torch.enable_grad():
        logits = model.answer(replace(features, stages=maps)).logits
    return StageMap(leaf.detach(), _Gradient(logits, leaf, FINAL, lambda g: g))


class Backwards:
    """At a stage before the last: the backbone behind it is passed backwards, too.

    `backbone` is a copy of the model's in which torch can do that (`Backbone.contiguous`).
    """

    def __init__(self, model: TaskModel, backbone: Backbone, stage: str) -> None:
        self.model, self.backbone, self.stage = model, backbone, stage
        self.stages = backbone.reader.select([*model.neck.stages, *model.head.stages, stage])
        backbone.reader.listen_at(stage)

    def __call__(self, images: Tensor) -> StageMap:
        with torch.enable_grad():
            features, leaf = self.backbone.forward_from(images, self.stages, self.stage, self.model.name)
            logits = self.model.answer(features).logits
        shape = features.stages[self.stage].shape

        def as_map(x: Tensor) -> Tensor:
            return self._as_map(x, shape, self.stage)

        return StageMap(as_map(leaf.detach()), _Gradient(logits, leaf, self.stage, as_map))

    def _as_map(self, x: Tensor, shape: torch.Size, stage: str) -> Tensor:
        """[B, C, H, W] of a map with channels last, or of tokens behind class and register tokens."""
        if x.ndim == 4 and x.shape != shape:
            x = x.permute(0, 3, 1, 2)
        elif x.ndim == 3:
            x = x[:, -shape[2] * shape[3] :].transpose(1, 2).unflatten(2, shape[2:])
        if x.shape != shape:
            raise ConfigError(
                f"{self.backbone.name} gives no map at {stage} that can be explained; use another stage, or final"
            )
        return x


@dataclass(frozen=True)
class _Gradient:
    """Images do not depend on one another, so the gradient of a sum of logits, one per image, is that of each."""

    logits: Tensor  # [B, N]
    leaf: Tensor
    stage: str
    as_map: Callable[[Tensor], Tensor]

    def __call__(self, columns: Tensor) -> Tensor:
        chosen = self.logits.gather(1, columns[:, None]).sum()
        (found,) = torch.autograd.grad(chosen, self.leaf, retain_graph=True, allow_unused=True)
        if found is None:
            raise ConfigError(f"the scores of this model do not depend on stage {self.stage}; choose another")
        return self.as_map(found)

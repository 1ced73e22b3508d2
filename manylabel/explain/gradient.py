"""A stage's map and the gradients of labels' logits with respect to it, for a whole batch in as many passes as labels."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from manylabel.backbone import Backbone
from manylabel.error import ConfigError
from manylabel.features import FINAL, Features
from manylabel.model import Model


@dataclass(frozen=True)
class StageMap:
    """What class activation maps are made of."""

    a: Tensor  # [B, C, H, W]
    gradient: Callable[[Tensor], Tensor]  # columns [B] → ∂ logits[b, columns[b]] / ∂ a[b], for all b at once


def final_map(model: Model, features: Features) -> StageMap:
    """At the end of the backbone: only neck and head are passed backwards."""
    maps = {name: values.detach().contiguous() for name, values in features.stages.items()}
    leaf = maps[FINAL] = maps[FINAL].requires_grad_()
    with torch.enable_grad():
        logits = model.neck.logits(model.head, Features(maps, features.prefix))
    return StageMap(leaf.detach(), _Gradient(logits, leaf, FINAL, lambda g: g))


class Backwards:
    """At any stage: the backbone behind it is passed backwards, too.

    It works on a copy of the backbone that asks for no gradient of weights and does not use channels last, in which some
    backward passes of torch crash on a CPU.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.backbone: Backbone = copy.deepcopy(model.backbone).eval().requires_grad_(False)
        self.backbone.layout = torch.contiguous_format
        self.backbone.body.to(memory_format=torch.contiguous_format)

    def __call__(self, images: Tensor, stage: str) -> StageMap:
        self.backbone.stages = self.backbone.reader.select([*self.model.neck.stages, *self.model.head.stages, stage])
        with torch.enable_grad(), self._leaf(stage) as caught:
            features = self.backbone(images)
            logits = self.model.neck.logits(self.model.head, features)
        shape, leaf = features.stages[stage].shape, caught.get("leaf")
        if leaf is None:
            raise ConfigError(f"{self.backbone.name} shows nothing at {stage}; use another stage, or final")

        def as_map(x: Tensor) -> Tensor:
            return self._as_map(x, shape, stage)

        return StageMap(as_map(leaf.detach()), _Gradient(logits, leaf, stage, as_map))

    @contextmanager
    def _leaf(self, stage: str) -> Iterator[dict[str, Tensor]]:
        """While the stage's module runs, what it gives is exchanged for the same numbers as the beginning of a graph."""
        caught: dict[str, Tensor] = {}

        def begin(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            first = output[0] if isinstance(output, (tuple, list)) else output
            caught["leaf"] = first.detach().contiguous().requires_grad_()
            begun = caught["leaf"].clone()  # what follows may work in place
            return type(output)([begun, *output[1:]]) if isinstance(output, (tuple, list)) else begun

        hook = self.backbone.reader.module(stage).register_forward_hook(begin)
        try:
            yield caught
        finally:
            hook.remove()

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

"""Optimisers and schedules: torch's own, with one rule for weight decay and one for the rates of the backbone's layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer, lr_scheduler

from manylabel.config import option
from manylabel.model import Model
from manylabel.registry import Registry

OPTIMISERS = Registry("optimiser")
SCHEDULES = Registry("schedule")


@dataclass(frozen=True)
class CommonOptions:
    lr: float = option(3e-3, "highest rate, of the head")
    weight_decay: float = option(0.01, "on matrices; never on biases, norms and other vectors")
    backbone_rate: float = option(0.1, "the backbone's rate as a share of the head's")
    layer_decay: float = option(1.0, "each earlier layer group's rate as a share of the next one's")


def parameter_groups(model: Model, options: CommonOptions) -> list[dict[str, Any]]:
    """Trained parameters, grouped by rate and by whether they decay."""
    depth = model.backbone.layer_groups()
    deepest = max(depth.values())
    groups: dict[tuple[float, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        rate = 1.0
        if name.startswith("backbone.body."):
            rate = options.backbone_rate * options.layer_decay ** (deepest - depth[name.removeprefix("backbone.body.")])
        groups.setdefault((rate, parameter.ndim > 1), []).append(parameter)
    return [
        {"params": parameters, "lr": options.lr * rate, "weight_decay": options.weight_decay if decays else 0.0}
        for (rate, decays), parameters in groups.items()
    ]


@OPTIMISERS.register("adamw")
class AdamW:
    """Adam with decoupled weight decay."""

    @dataclass(frozen=True)
    class Options(CommonOptions):
        betas: tuple[float, ...] = option((0.9, 0.999), "decay of the two moments")

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, model: Model) -> Optimizer:
        b1, b2 = self.options.betas
        return torch.optim.AdamW(parameter_groups(model, self.options), betas=(b1, b2), fused=False, foreach=True)


@OPTIMISERS.register("adam")
class Adam(AdamW):
    """Adam with L2 regularisation inside the gradient, as the papers' code has it."""

    def build(self, model: Model) -> Optimizer:
        b1, b2 = self.options.betas
        return torch.optim.Adam(parameter_groups(model, self.options), betas=(b1, b2), foreach=True)


@OPTIMISERS.register("sgd")
class Sgd:
    """Stochastic gradient descent with momentum."""

    @dataclass(frozen=True)
    class Options(CommonOptions):
        lr: float = option(0.05, "highest rate, of the head")
        weight_decay: float = option(1e-4, "on matrices; never on biases, norms and other vectors")
        momentum: float = option(0.9, "momentum")
        nesterov: bool = option(False, "Nesterov's form of momentum")

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, model: Model) -> Optimizer:
        o = self.options
        groups = parameter_groups(model, o)
        return torch.optim.SGD(groups, lr=o.lr, momentum=o.momentum, nesterov=o.nesterov, foreach=True)


@SCHEDULES.register("one_cycle")
class OneCycle:
    """Up to the highest rate and down to almost nothing, stepped once per change of the weights."""

    @dataclass(frozen=True)
    class Options:
        warm_up: float = option(0.2, "share of the steps that go up")
        start: float = option(1 / 25, "first rate as a share of the highest")
        end: float = option(1e-5, "last rate as a share of the highest")

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, optimiser: Optimizer, steps: int) -> lr_scheduler.LRScheduler:
        o = self.options
        return lr_scheduler.OneCycleLR(
            optimiser,
            max_lr=[group["lr"] for group in optimiser.param_groups],
            total_steps=max(steps, 1),
            pct_start=o.warm_up,
            div_factor=1 / o.start,
            final_div_factor=o.start / o.end,
            cycle_momentum=False,
        )


@SCHEDULES.register("cosine")
class Cosine:
    """Straight up for a while, then down half a cosine."""

    @dataclass(frozen=True)
    class Options:
        warm_up: float = option(0.05, "share of the steps that go up")
        end: float = option(0.0, "last rate as a share of the highest")

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, optimiser: Optimizer, steps: int) -> lr_scheduler.LRScheduler:
        up = round(self.options.warm_up * steps)
        highest = max(group["lr"] for group in optimiser.param_groups)
        down = lr_scheduler.CosineAnnealingLR(optimiser, max(steps - up, 1), eta_min=self.options.end * highest)
        if not up:
            return down
        rise = lr_scheduler.LinearLR(optimiser, start_factor=1 / (up + 1), total_iters=up)
        return lr_scheduler.SequentialLR(optimiser, [rise, down], milestones=[up])


@SCHEDULES.register("constant")
class Constant:
    """The same rate throughout."""

    @dataclass(frozen=True)
    class Options:
        pass

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, optimiser: Optimizer, steps: int) -> lr_scheduler.LRScheduler:
        return lr_scheduler.ConstantLR(optimiser, factor=1.0, total_iters=0)

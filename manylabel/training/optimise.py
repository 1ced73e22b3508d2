"""Optimisers and schedules: torch's own, with one rule for weight decay and one for the rates of the backbone's layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import timm.optim
import torch
from torch import Tensor
from torch.optim import Optimizer, lr_scheduler

from manylabel.config import option
from manylabel.registry import Registry
from manylabel.require import require

OPTIMISERS = Registry("optimiser")
SCHEDULES = Registry("schedule")


@dataclass(frozen=True)
class CommonOptions:
    lr: float = option(3e-3, "highest rate, of the head")
    weight_decay: float = option(0.01, "on matrices; never on biases, norms and other vectors")
    backbone_rate: float = option(0.1, "the backbone's rate as a share of the head's")
    layer_decay: float = option(1.0, "each earlier layer group's rate as a share of the next one's")

    def __post_init__(self) -> None:
        require(self.lr > 0, "optimiser.lr", self.lr, "above 0")
        require(self.weight_decay >= 0, "optimiser.weight_decay", self.weight_decay, "0 or more")
        require(self.backbone_rate >= 0, "optimiser.backbone_rate", self.backbone_rate, "0 or more")
        require(0 < self.layer_decay <= 1, "optimiser.layer_decay", self.layer_decay, "above 0 and at most 1")
        betas = getattr(self, "betas", (0.0, 0.0))
        require(len(betas) == 2 and all(0 <= b < 1 for b in betas), "optimiser.betas", betas, "two numbers in 0..1")
        momentum = getattr(self, "momentum", 0.0)
        require(0 <= momentum < 1, "optimiser.momentum", momentum, "at least 0 and below 1")


class Rated(Protocol):
    """A model that knows how fast its parts are to learn."""

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]: ...

    def rates(self, options: CommonOptions) -> Mapping[str, float]:
        """Parameters by name whose rate is another than the highest one, with its share of that."""


def parameter_groups(model: Rated, options: CommonOptions) -> list[dict[str, Any]]:
    """Trained parameters, grouped by rate and by whether they decay."""
    rates = model.rates(options)
    groups: dict[tuple[float, bool], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        bias = name.rpartition(".")[2].startswith("bias")  # those of a bank of experts are no vectors
        groups.setdefault((rates.get(name, 1.0), parameter.ndim > 1 and not bias), []).append(parameter)
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

    def build(self, model: Rated) -> Optimizer:
        b1, b2 = self.options.betas
        return torch.optim.AdamW(parameter_groups(model, self.options), betas=(b1, b2), fused=False, foreach=True)


@OPTIMISERS.register("adam")
class Adam(AdamW):
    """Adam with L2 regularisation inside the gradient, as the papers' code has it."""

    def build(self, model: Rated) -> Optimizer:
        b1, b2 = self.options.betas
        return torch.optim.Adam(parameter_groups(model, self.options), betas=(b1, b2), foreach=True)


@OPTIMISERS.register("lamb")
class Lamb(AdamW):
    """Adam whose step in each layer is as long as the layer's weights say, for large batches (ImageNet A1 and A2)."""

    @dataclass(frozen=True)
    class Options(AdamW.Options):
        max_grad_norm: float = option(1.0, "largest gradient norm of all weights together; 0 = off")

        def __post_init__(self) -> None:
            super().__post_init__()
            require(self.max_grad_norm >= 0, "optimiser.max_grad_norm", self.max_grad_norm, "0 or more")

    options: Options

    def build(self, model: Rated) -> Optimizer:
        o = self.options
        groups = parameter_groups(model, o)
        return timm.optim.Lamb(groups, betas=(o.betas[0], o.betas[1]), max_grad_norm=o.max_grad_norm or None)


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

    def build(self, model: Rated) -> Optimizer:
        o = self.options
        groups = parameter_groups(model, o)
        return torch.optim.SGD(groups, lr=o.lr, momentum=o.momentum, nesterov=o.nesterov, foreach=True)


def _follow(optimiser: Optimizer, share: Callable[[int], float]) -> lr_scheduler.LRScheduler:
    """Every group's rate is its own highest one times share(step): the same curve for head and backbone."""
    return lr_scheduler.LambdaLR(optimiser, share)


class _WithMomentum(lr_scheduler.LambdaLR):
    """The same, and every group's momentum (Adam's β1) is momentum(step)."""

    def __init__(self, optimiser: Optimizer, share: Callable[[int], float], momentum: Callable[[int], float]) -> None:
        self._momentum = momentum
        super().__init__(optimiser, share)

    def get_lr(self) -> list[float | Tensor]:  # torch asks at the start and at every step
        value = self._momentum(self.last_epoch)
        for group in self.optimizer.param_groups:
            group |= {"betas": (value, group["betas"][1])} if "betas" in group else {"momentum": value}
        return super().get_lr()

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in super().state_dict().items() if key != "_momentum"}


def _half_cosine(start: float, end: float, t: float) -> float:
    """From start (t = 0) to end (t = 1)."""
    return end + (start - end) * (1 + math.cos(math.pi * t)) / 2


LEAST_MOMENTUM, MOST_MOMENTUM = 0.85, 0.95  # of torch's OneCycleLR


@SCHEDULES.register("one_cycle")
class OneCycle:
    """Up to the highest rate and down to almost nothing, stepped once per change of the weights."""

    @dataclass(frozen=True)
    class Options:
        warm_up: float = option(0.2, "share of the steps that go up")
        start: float = option(1 / 25, "first rate as a share of the highest")
        end: float = option(1e-5, "last rate as a share of the highest")
        part: float = option(1.0, "share of the cycle that the run takes, from its start")
        cycle_momentum: bool = option(
            False, "momentum, or Adam's β1, goes from 0.95 down to 0.85 as the rate rises, and back, as torch's does"
        )

        def __post_init__(self) -> None:
            for name in ("warm_up", "start", "end"):
                value = getattr(self, name)
                require(0 <= value <= 1, f"schedule.{name}", value, "between 0 and 1")
            require(0 < self.part <= 1, "schedule.part", self.part, "above 0 and at most 1")

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, optimiser: Optimizer, steps: int) -> lr_scheduler.LRScheduler:
        o = self.options
        last = max((steps - 1) / o.part, 1)
        top = o.warm_up * last

        def cycle(first: float, highest: float, end: float, step: int) -> float:
            if step < top:
                return _half_cosine(first, highest, step / top)
            return _half_cosine(highest, end, min((step - top) / max(last - top, 1), 1.0))

        def share(step: int) -> float:
            return cycle(o.start, 1.0, o.end, step)

        def momentum(step: int) -> float:
            return cycle(MOST_MOMENTUM, LEAST_MOMENTUM, MOST_MOMENTUM, step)

        return _WithMomentum(optimiser, share, momentum) if o.cycle_momentum else _follow(optimiser, share)


@SCHEDULES.register("cosine")
class Cosine:
    """Straight up for a while, then down half a cosine."""

    @dataclass(frozen=True)
    class Options:
        warm_up: float = option(0.05, "share of the steps that go up")
        end: float = option(0.0, "last rate as a share of the highest")

        def __post_init__(self) -> None:
            for name in ("warm_up", "end"):
                value = getattr(self, name)
                require(0 <= value <= 1, f"schedule.{name}", value, "between 0 and 1")

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, optimiser: Optimizer, steps: int) -> lr_scheduler.LRScheduler:
        up = round(self.options.warm_up * steps)

        def share(step: int) -> float:
            if step < up:
                return (step + 1) / (up + 1)
            return _half_cosine(1.0, self.options.end, min((step - up) / max(steps - up, 1), 1.0))

        return _follow(optimiser, share)


@SCHEDULES.register("constant")
class Constant:
    """The same rate throughout."""

    @dataclass(frozen=True)
    class Options:
        pass

    def __init__(self, options: Options) -> None:
        self.options = options

    def build(self, optimiser: Optimizer, steps: int) -> lr_scheduler.LRScheduler:
        return _follow(optimiser, lambda _step: 1.0)

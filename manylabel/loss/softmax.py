"""Losses of one label per image: the labels compete, p = softmax(x)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Tensor, nn

from manylabel.config import option
from manylabel.loss.base import LOSSES
from manylabel.loss.counts import Counts
from manylabel.require import require

EXCLUDED = -1e4  # logit of a label that is no candidate: its probability is exactly 0 in float32


@dataclass(frozen=True)
class SoftmaxOptions:
    """Settings of every loss of this kind."""

    reduction: Literal["mean", "sum"] = option("mean", "over the images whose label is known")
    label_smoothing: float = option(0.0, "targets y become y(1−ε) + ε/N")
    class_weight: Literal["none", "balanced", "sqrt"] = option(
        "none", "weight of each label: 1, as many times as the mean label has its training images, or the root of that"
    )
    class_weight_cap: float = option(20.0, "weights stay between 1/cap and cap")

    def __post_init__(self) -> None:
        smoothing, cap = self.label_smoothing, self.class_weight_cap
        require(0 <= smoothing < 1, "loss.label_smoothing", smoothing, "at least 0 and below 1")
        require(1 <= cap < math.inf, "loss.class_weight_cap", cap, "1 or more")


class SoftmaxLoss(nn.Module, ABC):
    """`loss(logits[B, N], targets[B, N] in 0…1, known[B, N] bool)` → scalar, float32 whatever the logits are.

    An image without a known present label is left out; a label that is unknown for an image is no candidate there.
    """

    Options: type[SoftmaxOptions] = SoftmaxOptions
    activation = "softmax"
    weights: Tensor | None  # [N]

    def __init__(
        self, options: SoftmaxOptions, *, positive_counts: Tensor | None = None, known_counts: Tensor | None = None
    ) -> None:
        super().__init__()
        self.options = options
        weights = None
        if options.class_weight != "none":
            counts = Counts.of(positive_counts, known_counts, setting=f"class_weight={options.class_weight}")
            share = counts.positive.mean() / counts.positive.clamp(min=1e-9)
            cap = options.class_weight_cap
            weights = (share.sqrt() if options.class_weight == "sqrt" else share).clamp(1 / cap, cap).float()
        self.register_buffer("weights", weights, persistent=False)

    @abstractmethod
    def focus(self, p: Tensor, y: Tensor) -> Tensor | float:
        """Weight of each entry of −Σ y log p. [B, N]"""

    def forward(self, logits: Tensor, targets: Tensor, known: Tensor) -> Tensor:
        if not logits.shape == targets.shape == known.shape:
            shapes = [list(t.shape) for t in (logits, targets, known)]
            raise ValueError(f"logits, targets and known must have one shape [B, N], not {shapes}")
        o, known = self.options, known.bool()
        y = targets.float().masked_fill(~known, 0.0)
        take = y.sum(dim=1) > 0  # [B]
        x = logits.float().masked_fill(~known | ~take[:, None], EXCLUDED)
        log_p = torch.log_softmax(x, dim=1)
        candidates = known.sum(dim=1, keepdim=True).clamp(min=1)
        smooth = y * (1 - o.label_smoothing) + known * (o.label_smoothing / candidates)
        cost = -smooth * self.focus(log_p.exp(), y) * log_p  # [B, N]
        if self.weights is not None:
            cost = cost * self.weights
        take = known & take[:, None]
        return self.reduce(cost.masked_fill(~take, 0.0), take)

    def reduce(self, cost: Tensor, take: Tensor) -> Tensor:
        """Costs [B, …] to one number, as the costs of the entries [B, N] that count would be."""
        return cost.sum() if self.options.reduction == "sum" else cost.sum() / take.any(dim=1).sum().clamp(min=1)

    def extra_repr(self) -> str:
        return ", ".join(f"{f.name}={getattr(self.options, f.name)}" for f in fields(self.options))


@LOSSES.register("cross_entropy")
class CrossEntropyLoss(SoftmaxLoss):
    """Cross entropy of one label per image: −Σ y log p, p = softmax(x)."""

    @dataclass(frozen=True)
    class Options(SoftmaxOptions):
        pass

    def focus(self, p: Tensor, y: Tensor) -> float:
        return 1.0


@LOSSES.register("asl_single")
class SingleLabelASL(SoftmaxLoss):
    """Asymmetric loss of one label per image: −Σ y′ w log p, w = (1−p)^γ+ for the label and p^γ− for the others.

    y′ are smoothed targets; without smoothing the others cost nothing and it is a focal cross entropy.
    """

    @dataclass(frozen=True)
    class Options(SoftmaxOptions):
        label_smoothing: float = option(0.1, "targets y become y(1−ε) + ε/N")
        gamma_negative: float = option(4.0, "focusing exponent γ− of the other labels")
        gamma_positive: float = option(0.0, "focusing exponent γ+ of the image's label")
        detach_focus: bool = option(False, "no gradient through the focusing weights")

        def __post_init__(self) -> None:
            super().__post_init__()
            require(0 <= self.gamma_negative < math.inf, "loss.gamma_negative", self.gamma_negative, "0 or more")
            require(0 <= self.gamma_positive < math.inf, "loss.gamma_positive", self.gamma_positive, "0 or more")

    options: Options

    def focus(self, p: Tensor, y: Tensor) -> Tensor:
        o, tiny = self.options, torch.finfo(p.dtype).tiny  # pow has no gradient at 0
        weight = y * (1 - p).clamp(min=tiny) ** o.gamma_positive + (1 - y) * p.clamp(min=tiny) ** o.gamma_negative
        return weight.detach() if o.detach_focus else weight

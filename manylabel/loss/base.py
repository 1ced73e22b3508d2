"""What all losses share: masking, smoothing, weights and reduction. A new loss writes two formulas.

Every loss here is a sum of two costs of a logit, weighed by the target: y·present(x) + (1−y)·absent(x).
So soft targets (MixUp, smoothing) are exact, and unknown labels are dealt with in one place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from manylabel.config import option
from manylabel.loss.counts import Counts
from manylabel.loss.partial import UnknownOptions, counted
from manylabel.registry import Registry
from manylabel.require import require

LOSSES = Registry("loss")


@dataclass(frozen=True)
class LossOptions(UnknownOptions):
    """Settings of every loss."""

    reduction: Literal["mean", "sum_labels", "sum"] = option(
        "mean",
        "mean = over the entries that are known (or taken as absent); "
        "sum_labels = over labels, averaged over the images that have such an entry; "
        "sum = over everything, as the ASL and ML-Decoder recipes assume (their rates depend on batch and labels)",
    )
    label_smoothing: float = option(0.0, "targets y become y(1−ε) + ε/2")
    positive_weight: Literal["none", "balanced", "sqrt"] = option(
        "none", "weight of present labels: 1, negatives per positive among the known training entries, or its root"
    )
    positive_weight_cap: float = option(20.0, "positive weights stay between 1/cap and cap")

    def __post_init__(self) -> None:
        super().__post_init__()
        smoothing, cap = self.label_smoothing, self.positive_weight_cap
        require(0 <= smoothing < 1, "loss.label_smoothing", smoothing, "at least 0 and below 1")
        require(1 <= cap < math.inf, "loss.positive_weight_cap", cap, "1 or more")


class Loss(nn.Module, ABC):
    """`loss(logits[B, N], targets[B, N] in 0…1, known[B, N] bool)` → scalar, float32 whatever the logits are.

    Entries that are left out change neither value nor gradient, even if NaN; a batch of nothing else gives 0.
    `positive_counts` and `known_counts` [N] are counts over the training set, for the options that need them.
    """

    Options: type[LossOptions] = LossOptions
    activation = "sigmoid"  # what turns the logits it trains into scores
    positive_weights: Tensor | None  # [N]
    frequent: Tensor | None  # [N] bool
    unseen: Tensor | None  # [N] bool: labels that training never tells, so nothing is guessed of them

    def __init__(
        self, options: LossOptions, *, positive_counts: Tensor | None = None, known_counts: Tensor | None = None
    ) -> None:
        super().__init__()
        self.options = options
        weights = frequent = None
        if options.positive_weight != "none":
            counts = Counts.of(positive_counts, known_counts, setting=f"positive_weight={options.positive_weight}")
            weights = counts.positive_weights(options.positive_weight, options.positive_weight_cap)
        if options.unknown == "selective" and options.selective_prior < 1:
            counts = Counts.of(positive_counts, known_counts, setting="unknown=selective")
            frequent = counts.prevalence() > options.selective_prior
        self.register_buffer("positive_weights", weights, persistent=False)  # they belong to the data, not the model
        self.register_buffer("frequent", frequent, persistent=False)
        self.register_buffer("unseen", None, persistent=False)

    @abstractmethod
    def present(self, x: Tensor) -> Tensor:
        """Cost of a present label. [B, N]"""

    @abstractmethod
    def absent(self, x: Tensor, gamma: float | Tensor) -> Tensor:
        """Cost of an absent label, focused with `gamma`. [B, N]"""

    @property
    def absent_gamma(self) -> float:
        """Focusing exponent of labels that are known to be absent."""
        return 0.0

    def forward(self, logits: Tensor, targets: Tensor, known: Tensor) -> Tensor:
        if not logits.shape == targets.shape == known.shape:  # broadcasting here would train on nonsense
            shapes = [list(t.shape) for t in (logits, targets, known)]
            raise ValueError(f"logits, targets and known must have one shape [B, N], not {shapes}")
        o = self.options
        x, known = logits.float(), known.bool()
        take = counted(o, x, known, self.frequent, self.unseen)
        x = x.masked_fill(~take, 0.0)  # before any formula: 0 · NaN is NaN, in the gradient too
        y = targets.float().masked_fill(~known, 0.0)
        y = y * (1 - o.label_smoothing) + o.label_smoothing / 2

        cost = self._weigh(y) * self.present(x) + (1 - y) * self.absent(x, self._gamma(known))
        if o.unknown_weight != 1:
            cost = torch.where(known, cost, o.unknown_weight * cost)
        return self.reduce(cost.masked_fill(~take, 0.0), take)

    def _weigh(self, y: Tensor) -> Tensor:
        return y if self.positive_weights is None else self.positive_weights * y

    def _gamma(self, known: Tensor) -> float | Tensor:
        own = self.options.unknown_gamma
        return self.absent_gamma if own is None else torch.where(known, self.absent_gamma, own)

    def reduce(self, cost: Tensor, take: Tensor) -> Tensor:
        """Costs [B, …] to one number, as the costs of the entries [B, N] that count would be."""
        if self.options.reduction == "mean":
            return cost.sum() / take.sum().clamp(min=1)
        if self.options.reduction == "sum_labels":
            return cost.sum() / take.any(dim=1).sum().clamp(min=1)
        return cost.sum()

    def extra_repr(self) -> str:
        """The loss's own options, and the shared ones that were changed."""
        shared = {f.name: f.default for f in fields(LossOptions)}
        values = {f.name: getattr(self.options, f.name) for f in fields(self.options)}
        return ", ".join(f"{k}={v}" for k, v in values.items() if k not in shared or v != shared[k])


def log_sigmoid(x: Tensor) -> Tensor:
    """log p for p = σ(x). torch's own starts all threads for any size, which stalls on a busy machine."""
    return -softplus(-x)


def focus(log_q: Tensor, gamma: float | Tensor) -> Tensor:
    """q^γ from log q. Unlike pow, its gradient is finite where q is 0 in float32."""
    return torch.exp(gamma * log_q)

"""Focal loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from manylabel.config import option
from manylabel.loss.base import LOSSES, Loss, LossOptions, focus, log_sigmoid
from manylabel.require import require


@LOSSES.register("focal")
class FocalLoss(Loss):
    """Focal loss: −[α y (1−p)^γ log p + (1−α)(1−y) p^γ log(1−p)], p = σ(x); easy entries count less."""

    @dataclass(frozen=True)
    class Options(LossOptions):
        gamma: float = option(2.0, "focusing exponent γ; 0 = binary cross entropy")
        alpha: float | None = option(None, "weight α of present labels, 1−α of absent ones; none = 1 for both")

        def __post_init__(self) -> None:
            super().__post_init__()
            require(0 <= self.gamma < math.inf, "loss.gamma", self.gamma, "0 or more")
            require(self.alpha is None or 0 < self.alpha < 1, "loss.alpha", self.alpha, "none, or between 0 and 1")

    options: Options

    @property
    def absent_gamma(self) -> float:
        return self.options.gamma

    def present(self, x: Tensor) -> Tensor:
        alpha = 1.0 if self.options.alpha is None else self.options.alpha
        return -alpha * focus(log_sigmoid(-x), self.options.gamma) * log_sigmoid(x)

    def absent(self, x: Tensor, gamma: float | Tensor) -> Tensor:
        balance = 1.0 if self.options.alpha is None else 1 - self.options.alpha
        return -balance * focus(log_sigmoid(x), gamma) * log_sigmoid(-x)

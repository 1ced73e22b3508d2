"""Asymmetric loss (ASL)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manylabel.config import option
from manylabel.loss.base import LOSSES, Loss, LossOptions, focus, log_sigmoid
from manylabel.require import require


@LOSSES.register("asl")
class AsymmetricLoss(Loss):
    """Asymmetric loss: −[y (1−p)^γ+ log p + (1−y)(1−p_neg)^γ− log p_neg], p = σ(x), p_neg = min(1−p+m, 1).

    Absent labels are many and easy: γ− makes the easy ones small, the margin m (clip) drops those with p ≤ m.
    """

    @dataclass(frozen=True)
    class Options(LossOptions):
        gamma_negative: float = option(4.0, "focusing exponent γ− of absent labels")
        gamma_positive: float = option(0.0, "focusing exponent γ+ of present labels")
        clip: float = option(0.05, "margin m: absent labels with p ≤ m cost nothing; 0 = off")
        detach_focus: bool = option(True, "no gradient through the focusing weights")

        def __post_init__(self) -> None:
            super().__post_init__()
            require(0 <= self.gamma_negative < math.inf, "loss.gamma_negative", self.gamma_negative, "0 or more")
            require(0 <= self.gamma_positive < math.inf, "loss.gamma_positive", self.gamma_positive, "0 or more")
            require(0 <= self.clip < 1, "loss.clip", self.clip, "at least 0 and below 1")

    options: Options

    @property
    def absent_gamma(self) -> float:
        return self.options.gamma_negative

    def present(self, x: Tensor) -> Tensor:
        weight = focus(log_sigmoid(-x), self.options.gamma_positive)
        return -self._held(weight) * log_sigmoid(x)

    def absent(self, x: Tensor, gamma: float | Tensor) -> Tensor:
        m = self.options.clip
        log_m = x.new_full((), math.log(m) if m else -math.inf)
        log_p_neg = torch.logaddexp(log_sigmoid(-x), log_m).clamp(max=0)  # log(1 − p + m), with no log(0) at m = 0
        one_minus_p_neg = (x.sigmoid() - m).clamp(min=torch.finfo(x.dtype).tiny)  # pow has no gradient at 0
        return -self._held(one_minus_p_neg**gamma) * log_p_neg

    def _held(self, weight: Tensor) -> Tensor:
        return weight.detach() if self.options.detach_focus else weight

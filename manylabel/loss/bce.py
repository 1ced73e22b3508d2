"""Binary cross entropy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from manylabel.loss.base import LOSSES, Loss, LossOptions, focus, log_sigmoid


@LOSSES.register("bce")
class BCELoss(Loss):
    """Binary cross entropy of every label: −[y log p + (1−y) log(1−p)], p = σ(x)."""

    @dataclass(frozen=True)
    class Options(LossOptions):
        pass

    def present(self, x: Tensor) -> Tensor:
        return -log_sigmoid(x)

    def absent(self, x: Tensor, gamma: float | Tensor) -> Tensor:
        return -focus(log_sigmoid(x), gamma) * log_sigmoid(-x)  # γ is 0 but for unknown labels with one of their own

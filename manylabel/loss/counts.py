"""What the counts of the training set say about each label: how frequent it is, how much a present one weighs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manylabel.error import ConfigError


@dataclass(frozen=True)
class Counts:
    """Images of the training set, per label: with the label, and with anything known about it."""

    positive: Tensor  # [N] float64
    known: Tensor  # [N] float64

    @classmethod
    def of(cls, positive: Tensor | None, known: Tensor | None, *, setting: str) -> Counts:
        """Both counts, or an error that names the setting that needs them."""
        if positive is None or known is None:
            raise ConfigError(
                f"loss.{setting} needs the label counts of the training set, and there are none here; "
                "give positive_counts and known_counts, or leave that setting out"
            )
        if positive.dim() != 1 or positive.shape != known.shape:
            raise ValueError(f"counts must both be [labels], not {list(positive.shape)} and {list(known.shape)}")
        if (positive > known).any() or (positive < 0).any():
            raise ValueError("each positive count must lie between 0 and the known count of its label")
        return cls(positive.double(), known.double())

    def prevalence(self) -> Tensor:
        """Share of the known entries that are present; 0 for a label nobody annotated. [N]"""
        return self.positive / self.known.clamp(min=1)

    def positive_weights(self, mode: str, cap: float) -> Tensor:
        """Negatives per positive ('balanced') or its square root ('sqrt'), between 1/cap and cap. [N] float32

        The lower bound keeps a label that is always present from having no weight at all.
        """
        negative = self.known - self.positive
        ratio = torch.where(self.known > 0, negative / self.positive, 1.0)  # never positive: infinite, so the cap
        weights = ratio.sqrt() if mode == "sqrt" else ratio
        return weights.clamp(1 / cap, cap).float()

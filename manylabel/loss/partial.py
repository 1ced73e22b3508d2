"""Unknown labels: left out, taken as absent, or taken as absent where that is a safe guess.

The selective mode follows the idea of class-aware selective loss (CSL): an unknown entry is most likely absent,
except where the label is frequent or the model is already confident that it sees it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from manylabel.config import option
from manylabel.require import require


@dataclass(frozen=True)
class UnknownOptions:
    """How a loss treats entries that nobody annotated."""

    unknown: Literal["ignore", "negative", "selective"] = option(
        "ignore", "unknown labels are left out, taken as absent, or taken as absent but for frequent and likely ones"
    )
    unknown_weight: float = option(1.0, "weight of an unknown label that is taken as absent")
    unknown_gamma: float | None = option(
        None, "focusing exponent of an unknown label that is taken as absent; none = that of absent labels"
    )
    selective_prior: float = option(
        0.5,
        "with unknown=selective: labels present in more than this share of their known training entries are left out "
        "where unknown; 1 = none",
    )
    selective_top_k: int = option(
        5, "with unknown=selective: so many unknown entries of a batch, those with the highest logits, are left out"
    )

    def __post_init__(self) -> None:
        weight, gamma = self.unknown_weight, self.unknown_gamma
        require(0 < weight < math.inf, "loss.unknown_weight", weight, "above 0 (to leave them out: unknown=ignore)")
        require(gamma is None or 0 <= gamma < math.inf, "loss.unknown_gamma", gamma, "none, 0 or more")
        require(0 <= self.selective_prior <= 1, "loss.selective_prior", self.selective_prior, "between 0 and 1")
        require(self.selective_top_k >= 0, "loss.selective_top_k", self.selective_top_k, "0 or more")


def counted(
    options: UnknownOptions, logits: Tensor, known: Tensor, frequent: Tensor | None, unseen: Tensor | None = None
) -> Tensor:
    """Which entries of the batch take part in the loss. [B, N] bool

    `frequent` [N]: labels that are not guessed. `unseen` [N]: labels that training never tells, of which nothing is guessed
    and to which the head gives no logit in training.
    """
    if options.unknown == "ignore":
        return known
    guessed = ~known if unseen is None else ~known & ~unseen
    if options.unknown == "negative":
        return known | guessed
    doubtful = likeliest(logits, guessed, options.selective_top_k)
    if frequent is not None:
        doubtful = doubtful | frequent
    return known | (guessed & ~doubtful)


def likeliest(logits: Tensor, among: Tensor, k: int) -> Tensor:
    """The k entries of the whole batch with the highest logits where `among` holds. [B, N] bool"""
    scores = logits.detach().masked_fill(~among, -math.inf).flatten()
    top = scores.topk(min(k, scores.numel())).indices
    chosen = torch.zeros_like(scores, dtype=torch.bool)
    chosen[top] = True
    return chosen.view_as(among) & among  # with fewer than k candidates, others came along

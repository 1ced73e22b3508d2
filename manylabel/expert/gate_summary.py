"""What the gates of a layer do: each chooses for itself, all alike, or all the same expert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from manylabel.expert.load import ExpertUse, entropy

TAKES_ALL = 0.9  # a gate that gives one of its experts more than this has stopped mixing
EVEN = 0.98  # mean entropy from which on gates choose nothing
APART = 0.5  # divergence from which on labels have experts of their own
State = Literal["collapsed", "uniform", "specialised", "mixed"]


@dataclass(frozen=True)
class GateSummary:
    """One layer in figures from 0 to 1. Perfectly specialised gates have the same load as perfectly uniform ones."""

    entropy: float  # of the weights averaged over gates: 1 = all experts are used alike, by whomever
    highest: float  # share of the most used expert in that average
    label_entropy: float  # of a gate's weights in an image, the mean: 0 = each takes one expert, 1 = each all alike
    divergence: float  # between gates: 0 = all have the same weights, 1 = they are as different as can be
    collapsed: int  # gates that give more than 90 % to one and the same expert, if most of them do
    gates: int
    experts: int  # that a gate chooses among
    similarity: float | None  # mean cosine between the experts that a gate chooses among

    @property
    def state(self) -> State:
        if self.collapsed:
            return "collapsed"
        if self.label_entropy > EVEN:
            return "uniform"
        return "specialised" if self.divergence > APART else "mixed"


def gate_summaries(use: ExpertUse | None) -> list[GateSummary]:
    """Of every layer."""
    if use is None:
        return []
    similar = use.similarity or (None,) * len(use.layers)
    return [_summary(*layer) for layer in zip(use.layers, use.entropies, similar, strict=True)]


def _summary(weights: np.ndarray, entropies: np.ndarray, similarity: float | None) -> GateSummary:
    """weights [G, E] and entropies [G], means over images."""
    gates, experts = weights.shape
    mean = weights.mean(axis=0)
    load = float(entropy(torch.from_numpy(mean)))
    # Jensen–Shannon divergence of the gates, as a share of the highest possible: H(mean) − mean H ≤ log min(G, E)
    own = float(entropy(torch.from_numpy(weights)).mean())
    most = math.log(max(min(gates, experts), 2)) / math.log(max(experts, 2))
    taken = int((weights[:, mean.argmax()] > TAKES_ALL).sum())
    return GateSummary(
        load,
        float(mean.max()),
        float(entropies.mean()),
        min(max((load - own) / most, 0.0), 1.0),
        taken if 2 * taken > gates else 0,
        gates,
        experts,
        similarity,
    )

"""How much each expert is used: the mean weight that gates give it, as Fig. 5 of the HSQ paper shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

COLLAPSED = 0.9  # a gate that gives one of its experts more than this has stopped choosing


class GateLoad:
    """Adds up gate weights [B, G, K] while a model scores images; `each` keeps those of every image, too."""

    def __init__(self, each: bool = False) -> None:
        self.total: Tensor | None = None  # [G, K], float64
        self.images = 0
        self.kept: list[Tensor] | None = [] if each else None

    def add(self, weights: Tensor) -> None:
        total = weights.detach().float().sum(dim=0).cpu().double()  # not every device has float64
        self.total = total if self.total is None else self.total + total
        self.images += weights.shape[0]
        if self.kept is not None:
            self.kept.append(weights.detach().float().cpu())

    def mean(self) -> np.ndarray:
        """Mean weight of every expert for every gate. [G, K], rows add up to 1"""
        if self.total is None:
            raise ValueError("no image has passed the gates yet")
        return (self.total / self.images).numpy()

    def each(self) -> np.ndarray | None:
        """The weights of every image in order, where they were kept. [images, G, K]"""
        return torch.cat(self.kept).numpy() if self.kept else None


@dataclass(frozen=True)
class LoadSummary:
    """What one layer's gates do, in three figures."""

    entropy: float  # of the load averaged over gates, as a share of the highest possible; 1 = all experts alike
    highest: float  # share of the most used expert in that average
    collapsed: int  # gates that give one expert more than 90 %

    @classmethod
    def of(cls, load: np.ndarray) -> LoadSummary:
        mean = load.mean(axis=0)
        positive = mean[mean > 0]
        most = math.log(len(mean)) if len(mean) > 1 else 1.0
        entropy = float(-(positive * np.log(positive)).sum() / most)
        return cls(entropy, float(mean.max()), int((load.max(axis=1) > COLLAPSED).sum()))

"""How much each expert is used: the mean weight that gates give it, as Fig. 5 of the HSQ paper shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

COLLAPSED = 0.9  # a gate that gives one of its experts more than this has stopped choosing


@dataclass(frozen=True)
class Gates:
    """Whose gates a head has, and what they choose among."""

    experts: tuple[str, ...]  # names [E]
    of_label: tuple[int, ...]  # [N]: which of the G gates is a label's
    capacity: tuple[int, ...] | None = None  # [G]: how many shared experts each may use, where that adapts


@dataclass(frozen=True)
class ExpertUse:
    """How much the gates of a head used each expert, over some images."""

    gates: Gates
    layers: list[np.ndarray]  # of each layer: mean weights [G, E], rows add up to 1
    images: int

    @classmethod
    def together(cls, parts: Iterable[ExpertUse | None]) -> ExpertUse | None:
        """Of several sets of images, weighed by their numbers."""
        there = [part for part in parts if part is not None]
        if len(there) < 2:
            return there[0] if there else None
        images = [part.images for part in there]
        layers = [np.average(loads, axis=0, weights=images) for loads in zip(*(p.layers for p in there), strict=True)]
        return cls(there[0].gates, layers, sum(images))


class GateLoad:
    """Adds up the gate weights [B, G, E] of every layer while a model scores images."""

    def __init__(self, gates: Gates | None) -> None:
        self.gates = gates
        self.totals: list[Tensor] = []  # [G, E] float64 each
        self.images = 0

    def add(self, layers: Sequence[Tensor]) -> None:
        """What a trace holds of one batch."""
        sums = [
            weights.detach().float().sum(dim=0).cpu().double() for weights in layers
        ]  # not every device has float64
        self.totals = [a + b for a, b in zip(self.totals, sums, strict=True)] if self.totals else sums
        self.images += layers[0].shape[0] if layers else 0

    def use(self) -> ExpertUse | None:
        """None for heads without gates, and before the first image."""
        if self.gates is None or not self.totals:
            return None
        return ExpertUse(self.gates, [(total / self.images).numpy() for total in self.totals], self.images)


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

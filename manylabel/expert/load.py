"""How much each expert is used: the mean weight that gates give it, as Fig. 5 of the HSQ paper shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


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
    entropies: list[
        np.ndarray
    ]  # of each layer: of a gate's weights in an image, the mean over images [G]; 1 = all alike
    images: int
    similarity: tuple[float, ...] = ()  # of each layer: mean cosine between the experts that a gate chooses among

    @classmethod
    def together(cls, parts: Iterable[ExpertUse | None]) -> ExpertUse | None:
        """Of several sets of images, weighed by their numbers."""
        there = [part for part in parts if part is not None]
        if len(there) < 2:
            return there[0] if there else None
        images = [part.images for part in there]
        layers, entropies = (
            [np.average(of_layer, axis=0, weights=images) for of_layer in zip(*of_part, strict=True)]
            for of_part in ([p.layers for p in there], [p.entropies for p in there])
        )
        return cls(there[0].gates, layers, entropies, sum(images), there[0].similarity)


class GateLoad:
    """Adds up the gate weights [B, G, E] of every layer, and their entropies, while a model scores images."""

    def __init__(self, gates: Gates | None, similarity: tuple[float, ...] = ()) -> None:
        self.gates, self.similarity = gates, similarity
        self.totals: list[Tensor] = []  # float64: weights [G, E] of each layer, then entropies [G] of each
        self.images = 0

    def add(self, layers: Sequence[Tensor]) -> None:
        """What a trace holds of one batch."""
        weights = [w.detach().float() for w in layers]
        per_image = [*weights, *(entropy(w) for w in weights)]
        sums = [x.sum(dim=0).cpu().double() for x in per_image]  # not every device has float64
        self.totals = [a + b for a, b in zip(self.totals, sums, strict=True)] if self.totals else sums
        self.images += layers[0].shape[0] if layers else 0

    def use(self) -> ExpertUse | None:
        """None for heads without gates, and before the first image."""
        if self.gates is None or not self.totals:
            return None
        means = [(total / self.images).numpy() for total in self.totals]
        count = len(means) // 2
        return ExpertUse(self.gates, means[:count], means[count:], self.images, self.similarity)


def entropy(weights: Tensor) -> Tensor:
    """−Σ_k a_k log a_k / log E: 0 = one expert takes all, 1 = all alike. [..., E] → [...]"""
    share: Tensor = torch.special.entr(weights).sum(dim=-1) / math.log(max(weights.shape[-1], 2))
    return share

"""What gates and necks did for each image: the weights of experts, and the shares of stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from manylabel.core.trace import Trace
from manylabel.expert import Gates
from manylabel.features import Features
from manylabel.model import TaskModel


@dataclass(frozen=True)
class Readout:
    """Of one batch."""

    gates: Gates | None = None
    weights: tuple[np.ndarray, ...] = ()  # of each layer with gates: [B, G, E]
    mixed: Mapping[str, np.ndarray] = field(default_factory=dict)  # stage → [B, 1] or [B, N]

    def experts(self, image: int, label: int) -> tuple[dict[str, float], ...]:
        """Per layer: expert → weight that this label's gate gave it in this image."""
        if self.gates is None:
            return ()
        gate = self.gates.of_label[label]
        return tuple(
            dict(zip(self.gates.experts, map(float, layer[image, gate]), strict=True)) for layer in self.weights
        )

    def shares(self, image: int, label: int) -> dict[str, float]:
        """stage → its share in what the neck gave for this label."""
        return {name: float(part[image, label if part.shape[1] > 1 else 0]) for name, part in self.mixed.items()}


@torch.no_grad()
def scores_and_readout(model: TaskModel, features: Features) -> tuple[Tensor, Readout]:
    """Logits [B, N], and what happened on the way to them."""
    gates: list[Tensor] = []
    shares: dict[str, Tensor] = {}
    logits = model.answer(features, trace=Trace(gates=gates, shares=shares)).logits
    mixed = {name: share.float().cpu().numpy() for name, share in shares.items()}
    return logits, Readout(model.head.gates, tuple(weights.float().cpu().numpy() for weights in gates), mixed)

"""What gates and necks did for each image: the weights of experts, and the shares of stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel.features import Features
from manylabel.model import Model


@dataclass(frozen=True)
class Readout:
    """Of one batch."""

    watched: Mapping[str, Any] | None = None  # what Head.watched gives, with "each"
    mixed: Mapping[str, np.ndarray] = field(default_factory=dict)  # stage → [B, 1] or [B, N]

    def experts(self, image: int, label: int) -> tuple[dict[str, float], ...]:
        """Per layer: expert → weight that this label's gate gave it in this image."""
        if self.watched is None or not self.watched["each"]:
            return ()
        gate = self.watched["gate_of_label"][label]
        return tuple(
            dict(zip(self.watched["experts"], map(float, layer[image, gate]), strict=True))
            for layer in self.watched["each"]
        )

    def shares(self, image: int, label: int) -> dict[str, float]:
        """stage → its share in what the neck gave for this label."""
        return {name: float(part[image, label if part.shape[1] > 1 else 0]) for name, part in self.mixed.items()}


@torch.no_grad()
def scores_and_readout(model: Model, features: Features) -> tuple[Tensor, Readout]:
    """Logits [B, N], and what happened on the way to them."""
    model.head.watch(each=True)  # a neck that asks the head several times asks for the backbone's own output first
    try:
        logits = model.neck.logits(model.head, features)
    finally:
        watched = model.head.watched()
    shares = {name: share.float().cpu().numpy() for name, share in model.neck.shares(features).items()}
    return logits, Readout(watched, shares)

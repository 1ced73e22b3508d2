from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def cost(x: Tensor, y: Tensor, w: float, gamma: float | None, o: dict[str, Any]) -> Tensor:
    p, m = 1 / (1 + torch.exp(-x)), o.get("clip", 0.05)
    p_neg = torch.minimum(1 - p + m, torch.ones_like(p))
    weight_pos = (1 - p) ** o.get("gamma_positive", 0.0)
    weight_neg = (1 - p_neg) ** (o.get("gamma_negative", 4.0) if gamma is None else gamma)
    if o.get("detach_focus", True):
        weight_pos, weight_neg = weight_pos.detach(), weight_neg.detach()
    return -(w * y * weight_pos * torch.log(p) + (1 - y) * weight_neg * torch.log(p_neg))


VARIANTS: list[dict[str, Any]] = [
    {"detach_focus": False},
    {"gamma_negative": 2.0, "clip": 0.0},  # Query2Label's
    {"gamma_negative": 7.0, "reduction": "sum"},  # ML-Decoder's on Open Images
    {"gamma_negative": 1.5, "gamma_positive": 0.5, "clip": 0.2, "detach_focus": False},
]

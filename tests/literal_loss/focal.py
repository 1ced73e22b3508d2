from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def cost(x: Tensor, y: Tensor, w: float, gamma: float | None, o: dict[str, Any]) -> Tensor:
    p, g, alpha = 1 / (1 + torch.exp(-x)), o.get("gamma", 2.0), o.get("alpha")
    present, absent = (1.0, 1.0) if alpha is None else (alpha, 1 - alpha)
    g_absent = g if gamma is None else gamma
    return -(w * present * y * (1 - p) ** g * torch.log(p) + absent * (1 - y) * p**g_absent * torch.log(1 - p))


VARIANTS: list[dict[str, Any]] = [{"gamma": 0.5, "alpha": 0.25}, {"gamma": 3.0}]

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def cost(x: Tensor, y: Tensor, w: float, gamma: float | None, o: dict[str, Any]) -> Tensor:
    p = 1 / (1 + torch.exp(-x))
    return -(w * y * torch.log(p) + (1 - y) * p ** (gamma or 0) * torch.log(1 - p))


VARIANTS: list[dict[str, Any]] = []

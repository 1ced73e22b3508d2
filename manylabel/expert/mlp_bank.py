"""E perceptrons of one shape whose weights lie together: the experts of a sparse transformer block."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manylabel.error import ConfigError
from manylabel.expert.grouped import grouped_linear
from manylabel.require import require


class MLPBank(nn.Module):
    """f_i(x) = GELU(x W₁ᵢ + b₁ᵢ) W₂ᵢ + b₂ᵢ for i = 1 … E, D → H → D. They begin as a transformer's MLP does."""

    def __init__(self, count: int, dim: int, hidden: int) -> None:
        super().__init__()
        require(count >= 1, "experts", count, "1 or more")
        self.count = count
        self.weight1 = nn.Parameter(torch.empty(count, dim, hidden))
        self.bias1 = nn.Parameter(torch.zeros(count, hidden))
        self.weight2 = nn.Parameter(torch.empty(count, hidden, dim))
        self.bias2 = nn.Parameter(torch.zeros(count, dim))
        with torch.no_grad():
            for one in (*self.weight1, *self.weight2):
                nn.init.xavier_uniform_(one)

    @torch.no_grad()
    def begin_alike(self, noise: float) -> None:
        """Let every expert begin as the first one, this far apart, as a share of the spread of its weights."""
        for weight in (self.weight1, self.weight2):
            first = weight[0].clone()
            weight.copy_(first + noise * first.std() * torch.randn_like(weight))

    @torch.no_grad()
    def copy_mlp(self, first: nn.Linear, second: nn.Linear, noise: float = 0.0) -> None:
        """Let every expert begin as this MLP; `noise` = how far apart, as a share of the spread of its weights."""
        for layer, weight, bias in ((first, self.weight1, self.bias1), (second, self.weight2, self.bias2)):
            if layer.weight.T.shape != weight.shape[1:]:
                sizes = [" → ".join(map(str, shape)) for shape in (layer.weight.T.shape, weight.shape[1:])]
                raise ConfigError(f"a layer {sizes[0]} cannot begin the experts' {sizes[1]}: widths must be the same")
            weight.copy_(layer.weight.T)
            if noise:
                weight.add_(torch.randn_like(weight), alpha=noise * float(layer.weight.std()))
            bias.copy_(torch.zeros(()) if layer.bias is None else layer.bias)

    def forward(self, x: Tensor, counts: Sequence[int]) -> Tensor:
        """Rows sorted by expert, so many for each. [P, D] → [P, D]"""
        h = F.gelu(grouped_linear(x, self.weight1, self.bias1, counts))  # [P, H]
        return grouped_linear(h, self.weight2, self.bias2, counts)

    def every(self, x: Tensor) -> Tensor:
        """All experts on every row. [T, D] → [E, T, D]"""
        h = F.gelu(torch.baddbmm(self.bias1[:, None], x.expand(self.count, -1, -1), self.weight1))  # [E, T, H]
        return torch.baddbmm(self.bias2[:, None], h, self.weight2)

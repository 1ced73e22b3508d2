"""Many small networks of one shape, computed together: a batched product instead of a loop over them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class ExpertBank(nn.Module):
    """n experts for each of G owners, all d_i → d_o: X E as HSQ writes it, or MLPs W₂ ReLU(W₁ x + b₁) + b₂ with `hidden`.

    The experts of the labels, those that all labels share (one owner), the gates and the classifiers are all such banks.
    """

    def __init__(
        self,
        owners: int,
        count: int,
        d_in: int,
        d_out: int,
        hidden: int | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.owners, self.count, self.d_out, self.hidden = owners, count, d_out, hidden
        first = hidden or d_out
        self.weight = _uniform(d_in, owners, d_in, count, first)
        self.bias = _uniform(d_in, owners, count, first) if hidden or bias else None
        if hidden:
            self.weight2 = _uniform(hidden, owners * count, hidden, d_out)
            self.bias2 = _uniform(hidden, owners * count, d_out)

    def own(self, x: Tensor) -> Tensor:
        """Every owner's experts on that owner's input. [B, G, d_i] → [B, G, n, d_o]"""
        y: Tensor = torch.bmm(x.transpose(0, 1), self.weight.flatten(2)).transpose(0, 1)  # [B, G, n·h]
        y = y.unflatten(-1, (self.count, -1))
        if self.bias is not None:
            y = y + self.bias
        if self.hidden is None:
            return y
        out: Tensor = self._second(torch.relu(y).flatten(1, 2)).unflatten(1, (self.owners, self.count))
        return out

    def every(self, x: Tensor) -> Tensor:
        """All experts on every input. [R, d_i] → [R, G·n, d_o]"""
        y = x @ self.weight.transpose(0, 1).flatten(1)  # [R, G·n·h]
        y = y.unflatten(-1, (self.owners * self.count, -1))
        if self.bias is not None:
            y = y + self.bias.flatten(0, 1)
        return y if self.hidden is None else self._second(torch.relu(y))

    def _second(self, y: Tensor) -> Tensor:
        """[R, G·n, h] → [R, G·n, d_o]"""
        return torch.bmm(y.transpose(0, 1), self.weight2).transpose(0, 1) + self.bias2


def start_alike(banks: Iterable[ExpertBank], spread: float) -> None:
    """Let all linear experts begin near one that loses nothing: E ← √(1 − spread)·E_0 + √spread·E, 1 = as they are.

    E_0 is the identity, or a projection onto an orthonormal basis where widths differ. A mixture of independent experts
    begins as an average in which what tells inputs apart has cancelled out. MLPs begin as they are.
    """
    keep, common = math.sqrt(spread), math.sqrt(1 - spread)
    first: Tensor | None = None  # [d_i, d_o]
    with torch.no_grad():
        for bank in banks:
            if bank.hidden is not None:
                continue
            if first is None:
                d_in, d_out = bank.weight.shape[1], bank.weight.shape[3]
                first = torch.eye(d_in) if d_in == d_out else nn.init.orthogonal_(torch.empty(d_in, d_out))
                first = first.to(bank.weight)
            bank.weight.mul_(keep).add_(common * first[:, None])


def _uniform(fan_in: int, *shape: int) -> nn.Parameter:
    """U(±1/√fan_in), as torch's own linear layers begin."""
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))

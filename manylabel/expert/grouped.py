"""A linear layer for each group of rows: one product for each expert, on the rows that chose it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def grouped_linear(x: Tensor, weight: Tensor, bias: Tensor, counts: Sequence[int]) -> Tensor:
    """y = x W_i + b_i, the first counts[0] rows with i = 0, and so on. [P, D], [E, D, H], [E, H] → [P, H]"""
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight, bias = x.to(dtype), weight.to(dtype), bias.to(dtype)
    y: Tensor = _GroupedLinear.apply(x, weight, bias, list(counts))
    return y


class _GroupedLinear(torch.autograd.Function):
    """Gradients are written where they belong. Autograd's own would be E small ones, then copied into one: with 64 experts
    hundreds of megabytes, twice. A batched product would pad all groups to the largest, and is slower."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, counts: list[int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.counts = counts
        y = x.new_empty(x.shape[0], weight.shape[2])
        for rows, w, b, out in zip(x.split(counts), weight, bias, y.split(counts), strict=True):
            torch.addmm(b, rows, w, out=out)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias, _ = ctx.needs_input_grad
        dx = torch.empty_like(x) if to_x else None
        dw = torch.empty_like(weight) if to_weight else None
        db = weight.new_empty(weight.shape[0], weight.shape[2]) if to_bias else None
        start = 0
        for i, count in enumerate(ctx.counts):
            rows = slice(start, start := start + count)
            if dx is not None:
                torch.mm(dy[rows], weight[i].T, out=dx[rows])
            if dw is not None:
                torch.mm(x[rows].T, dy[rows], out=dw[i])
            if db is not None:
                torch.sum(dy[rows], dim=0, out=db[i])
        return dx, dw, db, None

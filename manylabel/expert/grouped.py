"""A linear layer for each group of rows: one product for each expert, on the rows that chose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate
from threading import Barrier
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

MANY = 8  # experts for each core, from which on a core computes whole experts instead of a part of every one


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
        rows, out = x.split(counts), y.split(counts)

        def one(i: int) -> None:
            torch.addmm(bias[i], rows[i], weight[i], out=out[i])

        _for_each(one, counts, x.device)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias, _ = ctx.needs_input_grad
        dx = torch.empty_like(x) if to_x else None
        dw = torch.empty_like(weight) if to_weight else None
        db = weight.new_empty(weight.shape[0], weight.shape[2]) if to_bias else None
        ends = list(accumulate(ctx.counts))

        def one(i: int) -> None:
            rows = slice(ends[i] - ctx.counts[i], ends[i])
            if dx is not None:
                torch.mm(dy[rows], weight[i].T, out=dx[rows])
            if dw is not None:
                torch.mm(x[rows].T, dy[rows], out=dw[i])
            if db is not None:
                torch.sum(dy[rows], dim=0, out=db[i])

        _for_each(one, ctx.counts, x.device)
        return dx, dw, db, None


# --- on all cores ---------------------------------------------------------------------------------------------------------


def _for_each(one: Callable[[int], None], counts: Sequence[int], device: torch.device) -> None:
    """one(i) for every expert. Many small products are slow when each is spread over all cores: then a core takes whole
    experts, with about as many rows as another core."""
    cores = torch.get_num_threads()
    watched = torch.is_inference_mode_enabled() or torch._C._len_torch_dispatch_stack() > 0  # of this thread alone
    if device.type != "cpu" or len(counts) < MANY * cores or cores == 1 or watched:
        for i in range(len(counts)):
            one(i)
        return
    before, total = [0, *accumulate(counts)][:-1], max(1, sum(counts))
    parts: list[list[int]] = [[] for _ in range(cores)]
    for i, rows in enumerate(before):
        parts[min(cores - 1, cores * rows // total)].append(i)

    def several(part: list[int]) -> None:
        with torch.no_grad():  # a thread begins with gradients on
            for i in part:
                one(i)

    list(_pool(cores).map(several, parts))


@cache
def _pool(cores: int) -> ThreadPoolExecutor:
    pool, together = (
        ThreadPoolExecutor(cores, "expert", initializer=torch.set_num_threads, initargs=(1,)),
        Barrier(cores),
    )
    list(pool.map(lambda _: together.wait(), range(cores)))  # all of them begin now, for …
    torch.set_num_threads(cores)  # … what they set would hold for every later thread, too
    return pool

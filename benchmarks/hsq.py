"""HSQ's layer against the loops of Algorithm 1, and what its blocks save."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.memory import peak_megabytes
from benchmarks.table import Row, interleave, less_is_better
from manylabel.allocator import keep_memory
from manylabel.head.hybrid_sharing import HybridSharingLayer

LOOPS = "Algorithm 1 in Python loops"
POOLED = "the same loops over experts and labels; one X_s for all is not Algorithm 1"
BATCHES = (2, 64)  # one that hides how the loops share their overhead between images, and that of the recipes


def loops(layer: HybridSharingLayer, x_t: Tensor, x_s: Tensor) -> tuple[Tensor, Tensor | None]:
    """Algorithm 1 as it is printed: a product for every expert and label, lists, Concat, and a sum. Linear experts."""
    labels = x_t.shape[1]
    assert layer.task is not None
    assert layer.shared is not None
    assert layer.gate is not None
    own: list[list[Tensor]] = [[] for _ in range(labels)]
    everything = []
    for j in range(layer.n_s):
        if layer.shared_branch:
            everything.append(x_s @ layer.shared.weight[0, :, j])
    for i in range(labels):
        for j in range(layer.n_t):
            expert = layer.task.weight[i, :, j]
            if layer.shared_branch:
                everything.append(x_s @ expert)
            own[i].append(x_t[:, i] @ expert)
    for j in range(layer.n_s):
        for i in range(labels):
            own[i].append(x_t[:, i] @ layer.shared.weight[0, :, j])
    o_t = []
    for i in range(labels):
        a_t = torch.softmax(x_t[:, i] @ layer.gate.weight[i, :, 0], dim=-1)
        o_t.append((torch.relu(torch.stack(own[i], dim=-2)) * a_t[..., None]).sum(dim=-2))
    if layer.shared_gate is None:
        return torch.stack(o_t, dim=1), None
    a_s = torch.softmax(x_s @ layer.shared_gate.weight[0, :, 0], dim=-1)
    o_s = (torch.relu(torch.stack(everything, dim=-2)) * a_s[..., None]).sum(dim=-2)
    return torch.stack(o_t, dim=1), o_s


def run(quick: bool = False) -> list[Row]:
    keep_memory()
    torch.manual_seed(0)
    return _against_loops(quick) + _memory(quick)


def _against_loops(quick: bool) -> list[Row]:
    """L = 80, n_s = 16, n_t = 1, forward and backward: labels alone, and with the shared branch on one or all vectors."""
    return [
        _row(batch, d_in, what, quick)
        for batch in (BATCHES[:1] if quick else BATCHES)
        for d_in in ((128,) if quick else (128, 512))
        for what in ("no shared branch (the head's default)", "X_s pooled", "X_s per label")
    ]


def _row(batch: int, d_in: int, what: str, quick: bool) -> Row:
    labels, d_out = 80, 64
    x_t = torch.randn(batch, labels, d_in)
    x_s = x_t.mean(dim=1, keepdim=True) if what == "X_s pooled" else x_t
    layer = HybridSharingLayer(labels, d_in, d_out, 1, 16, shared_branch=what.startswith("X_s"))
    with torch.inference_mode():
        both = zip(layer(x_t, x_s), loops(layer, x_t, x_s), strict=True)
        gap = max(float((a - b).abs().max()) for a, b in both if a is not None and b is not None)
    if gap > 1e-4:
        raise AssertionError(f"the two differ by {gap:.2g}, so their speed must not be compared")
    mine, theirs = _step(layer, layer, x_t, x_s), _step(layer, partial(loops, layer), x_t, x_s)
    ours, peer = interleave(mine, theirs, 3 if quick else 7)
    case = f"L = {labels}, n_s = 16, n_t = 1, {d_in} → {d_out}, batch {batch}, {what}, forward and backward"
    peer_name = POOLED if what == "X_s pooled" else LOOPS
    return less_is_better("hybrid sharing layer", case, 1000 * ours, 1000 * peer, "ms", peer_name)


def _step(
    layer: HybridSharingLayer, f: Callable[..., tuple[Tensor, Tensor | None]], x_t: Tensor, x_s: Tensor
) -> Callable[[], None]:
    """Forward and backward through all branches there are."""

    def step() -> None:
        layer.zero_grad()
        o_t, o_s = f(x_t, x_s)
        loss = o_t.square().mean()
        (loss if o_s is None else loss + o_s.square().mean()).backward()

    return step


def _memory(quick: bool) -> list[Row]:
    """Peak memory of a training step of the shared branch: blocks against everything at once."""
    labels, batch, d_in, d_out = 80, 16 if quick else 64, 128, 64
    layer = HybridSharingLayer(labels, d_in, d_out, 1, 16, shared_branch=True)
    x = torch.randn(batch, labels, d_in)
    step = _step(layer, layer, x, x)
    step()
    blocks = peak_megabytes(step)
    block, layer.block = layer.block, 10**12
    whole = peak_megabytes(step)
    layer.block = block
    if blocks is None or whole is None:
        return []
    case = f"L = {labels}, n_s = 16, {d_in} → {d_out}, batch {batch}, X_s per label, forward and backward"
    return [less_is_better("peak memory of the layer", case, blocks, whole, "MB", "all expert outputs at once")]

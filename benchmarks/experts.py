"""Sparse experts: what more of them cost, what they save, and two peers; forward and backward, routers included."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.table import Row, less_is_better
from manylabel.allocator import keep_memory
from manylabel.console import warn
from manylabel.expert import MLPBank, Router, SparseExperts, importance_loss, load_loss

CAPACITY = 1.05


class Mixture(nn.Module):
    """Router, experts and balance losses. The peers renormalise the weights of a token, so all do here."""

    def __init__(self, dim: int, hidden: int, experts: int, k: int, **options: Any) -> None:
        super().__init__()
        self.k, self.router = k, Router(dim, experts, ["see"], renormalise=k > 1)
        self.bank = MLPBank(experts, dim, hidden)
        self.layer = SparseExperts(self.bank, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        routing = self.router(x, "see", self.k)
        return self.layer(x, routing), importance_loss(routing) + load_loss(routing)


def run(quick: bool = False) -> list[Row]:
    keep_memory()
    torch.manual_seed(0)
    x = torch.randn(4, 64, 48) if quick else torch.randn(16, 256, 384)  # [B, N, D]
    hidden, repeats = 4 * x.shape[2], 2 if quick else 9
    return _growth(x, hidden, repeats) + _saving(x, hidden, repeats) + _against_peers(x, hidden, repeats)


def _growth(x: Tensor, hidden: int, repeats: int) -> list[Row]:
    """The work is the same whatever E is: what grows is the number of products, and the weights they touch."""
    steps = {n: _step(Mixture(x.shape[2], hidden, n, k=2), x) for n in (8, 16, 32, 64)}
    seconds = best(steps, repeats)
    return [
        less_is_better(f"{n} experts", _case(x, hidden, "k = 2"), 1e3 * seconds[n], 1e3 * seconds[8], "ms", "8 experts")
        for n in (16, 32, 64)
    ]


def _saving(x: Tensor, hidden: int, repeats: int) -> list[Row]:
    sparse, dense = Mixture(x.shape[2], hidden, 8, k=1), Mixture(x.shape[2], hidden, 8, k=1, static=True)
    dense.load_state_dict(sparse.state_dict())
    _same(sparse.eval(), dense.eval(), x)
    ours, peer = best({"ours": _step(sparse, x), "peer": _step(dense, x)}, repeats).values()
    case = _case(x, hidden, "E = 8, k = 1")
    return [less_is_better("sparse experts", case, 1e3 * ours, 1e3 * peer, "ms", "all experts on all tokens")]


def _against_peers(x: Tensor, hidden: int, repeats: int) -> list[Row]:
    """The same weights, and as many slots for each expert: the peers give them by tokens, ours by tokens times k, and they
    count those of every image alone."""
    ours, rows = Mixture(x.shape[2], hidden, 8, k=2, capacity=CAPACITY), []
    for name, build in PEERS.items():
        try:
            peer = build(ours, importlib.import_module(name.replace("-", "_")))
        except ImportError:
            warn(f"not compared with {name}, which is not installed: pip install 'manylabel[bench]'")
            continue
        _same_without_limits(ours, peer, x)
        steps = {"ours": _step(ours, x), "peer": _step(peer, x)}
        mine, theirs = best(steps, repeats).values()
        case = _case(x, hidden, f"E = 8, k = 2, capacity {CAPACITY}")
        rows.append(less_is_better("sparse experts", case, 1e3 * mine, 1e3 * theirs, "ms", name))
    return rows


# --- peers ---------------------------------------------------------------------------------------------------------------


def _st_moe(ours: Mixture, library: Any) -> Any:
    """st-moe-pytorch with our kind of expert instead of its gated one; threshold 0 = the second expert is always used."""
    bank, experts = ours.bank, nn.ModuleList()
    _, dim, hidden = bank.weight1.shape
    for w1, w2 in zip(bank.weight1, bank.weight2, strict=True):
        first, second = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        for layer, weight in ((first, w1), (second, w2)):
            layer.weight.data.copy_(weight.T)
            layer.bias.data.zero_()
        experts.append(nn.Sequential(first, nn.GELU(), second))
    peer = library.MoE(dim, bank.count, threshold_train=0.0, capacity_factor_train=2 * CAPACITY, experts=experts)
    peer.gate.to_gates.weight.data.copy_(ours.router.gate["see"])
    return peer


def _mixture_of_experts(ours: Mixture, library: Any) -> Any:
    bank = ours.bank
    _, dim, hidden = bank.weight1.shape
    slots = {"second_policy_train": "all", "capacity_factor_train": 2 * CAPACITY}
    peer = library.MoE(dim, bank.count, hidden, nn.GELU, **slots)
    peer.gate.w_gating.data.copy_(ours.router.gate["see"].T)
    peer.experts.w1.data.copy_(bank.weight1)
    peer.experts.w2.data.copy_(bank.weight2)
    return peer


PEERS: dict[str, Callable[[Mixture, Any], Any]] = {
    "st-moe-pytorch": _st_moe,
    "mixture-of-experts": _mixture_of_experts,
}


def _same_without_limits(ours: Mixture, peer: Any, x: Tensor) -> None:
    """Both with room for everything and without noise must agree, or their speed must not be compared."""
    limits = ours.layer.capacity, peer.gate.capacity_factor_train
    ours.layer.capacity, peer.gate.capacity_factor_train = None, float(ours.router.experts)
    _same(ours.eval(), peer.train(), x)
    ours.layer.capacity, peer.gate.capacity_factor_train = limits


def _same(ours: nn.Module, peer: nn.Module, x: Tensor) -> None:
    with torch.inference_mode():
        gap = float((ours(x)[0] - peer(x)[0]).abs().max())
    if gap > 1e-4:
        raise AssertionError(f"the two differ by {gap:.2g}, so their speed must not be compared")


# --- measuring -----------------------------------------------------------------------------------------------------------


def best(steps: Mapping[Any, Callable[[], None]], repeats: int) -> dict[Any, float]:
    """Least seconds of each, run by turns after one warm-up."""
    seconds = dict.fromkeys(steps, float("inf"))
    for turn in range(repeats + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn:
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def _step(module: nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward and backward in training mode, to the tokens too."""
    module.train()
    x = x.clone().requires_grad_()

    def step() -> None:
        module.zero_grad()
        x.grad = None
        y, auxiliary = module(x)[:2]
        (y.square().mean() + auxiliary).backward()

    return step


def _case(x: Tensor, hidden: int, what: str) -> str:
    images, tokens, dim = x.shape
    return f"{what}, {images} × {tokens} tokens, {dim} → {hidden} → {dim}, forward and backward"

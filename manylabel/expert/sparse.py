"""A sparse mixture of experts: each token is computed by the experts it chose, and by no other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from manylabel.expert.mlp_bank import MLPBank
from manylabel.expert.router import Routing
from manylabel.require import require


class ExpertList(nn.ModuleList):
    """Any modules D → D as experts; each is called once, on all rows that chose it.

    One that nobody chose is not called and has no gradient in that step, so distributed training must look for unused
    parameters. (A bank's are stacked, and get zeros.)
    """

    @property
    def count(self) -> int:
        return len(self)

    def forward(self, x: Tensor, counts: Sequence[int]) -> Tensor:
        """Rows sorted by expert, so many for each. [P, D] → [P, D]"""
        outputs = [f(rows) for f, rows in zip(self, x.split(list(counts)), strict=True) if len(rows)]
        return torch.cat(outputs) if outputs else x

    def every(self, x: Tensor) -> Tensor:
        """All experts on every row. [T, D] → [E, T, D]"""
        return torch.stack([f(x) for f in self])


class SparseExperts(nn.Module):
    """y = Σ R(x)_i f_i(x) over the k experts i that token x chose.

    With a capacity C an expert takes at most ⌈C·T·k/E⌉ of the T tokens while training; those it has no room for do without
    it, and a residual connection carries them past. All first choices come before all second ones, tokens in their order, or
    with `prioritised` (V-MoE's batch-prioritised routing) in the order of their highest weight. In evaluation mode every
    token is served: what is said of an image must not depend on the others in its batch.
    `static` computes every expert on every token, for a graph without breaks; exporting does so by itself.
    """

    def __init__(
        self,
        experts: MLPBank | Sequence[nn.Module],
        capacity: float | None = None,
        prioritised: bool = False,
        static: bool = False,
    ) -> None:
        super().__init__()
        require(capacity is None or 0 < capacity < math.inf, "capacity", capacity, "none, or above 0")
        self.experts = experts if isinstance(experts, MLPBank) else ExpertList(experts)
        self.capacity, self.prioritised, self.static = capacity, prioritised, static

    def forward(self, x: Tensor, routing: Routing) -> Tensor:
        """[..., D] → [..., D], the tokens in the order in which they were routed."""
        if self.static or torch.compiler.is_exporting():
            return self.dense(x, routing)
        tokens = self._tokens(x, routing)  # [T, D]
        pair = routing.expert.flatten().argsort(stable=True)  # [T·k] of token and choice, by expert
        fits = self.fits(routing)
        if fits is not None:
            pair = pair[fits.flatten()[pair]]  # [P]
        token = pair // routing.k
        counts = routing.expert.flatten()[pair].bincount(minlength=self.experts.count).tolist()
        y = self.experts(tokens.index_select(0, token), counts)  # [P, D]
        weighted = y * routing.weight.flatten()[pair, None]
        total = torch.zeros_like(tokens, dtype=weighted.dtype).index_add_(0, token, weighted)  # [T, D]
        return total.to(y.dtype).reshape(x.shape)

    def dense(self, x: Tensor, routing: Routing) -> Tensor:
        """The same from all experts on all tokens, R(x)_i = 0 where i was not chosen: no shape depends on a value."""
        tokens = self._tokens(x, routing)
        fits = self.fits(routing)
        weight = routing.weight if fits is None else routing.weight * fits
        r = torch.zeros_like(routing.probability).scatter(1, routing.expert, weight)  # [T, E]
        y = self.experts.every(tokens)  # [E, T, D]
        return (r.T[..., None] * y).sum(dim=0).to(y.dtype).reshape(x.shape)

    def fits(self, routing: Routing) -> Tensor | None:
        """Which choices the experts have room for. [T, k], None = all"""
        if self.capacity is None or not self.training:
            return None
        tokens, k = routing.expert.shape
        slots = math.ceil(self.capacity * tokens * k / routing.experts)
        turn = torch.arange(tokens, device=routing.expert.device)
        if self.prioritised:
            kind = {} if torch.compiler.is_exporting() else {"stable": True}  # ONNX's sort is so unasked
            turn = routing.weight[:, 0].argsort(descending=True, **kind)
        queue = routing.expert[turn].T.reshape(-1, 1)  # [k·T, 1] all first choices, then all second ones
        asks = queue == torch.arange(routing.experts, device=queue.device)  # [k·T, E]
        place = asks.cumsum(dim=0).gather(1, queue)  # from 1, in the queue before that expert
        return (place <= slots).view(k, tokens).T[turn.argsort()]

    def _tokens(self, x: Tensor, routing: Routing) -> Tensor:
        """[..., D] → [T, D]"""
        tokens, count = x.flatten(0, -2), self.experts.count
        require(routing.experts == count, "experts of the router", routing.experts, f"the layer's {count}")
        routed, there = routing.expert.shape[0], tokens.shape[0]
        require(routed == there, "routed tokens", routed, f"the layer's {there}")
        return tokens

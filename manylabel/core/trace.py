"""What happened on the way to an answer, for whoever asked: it flows out of a forward pass, never into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from manylabel.expert import Routing


@dataclass(frozen=True)
class QueryAttention:
    """Where the queries of a head looked: attention weights of its last layer over the tokens."""

    weights: Tensor  # [B, h, K, T]: of each attention head and query; over all tokens they add up to 1
    grids: Mapping[str, tuple[int, int]]  # stage → (rows, columns) of its tokens, in the order of the tokens


@dataclass(frozen=True)
class Trace:
    """Collects what is asked for: `Trace(gates=[], shares={})`. What is None is not computed.

    The model keeps nothing of it, so one model answers for many threads.
    """

    gates: list[Tensor] | None = (
        None  # of each hybrid-sharing layer with gates: weights [B, G, E], shared experts first
    )
    attention: list[QueryAttention] | None = None  # one entry, for heads with queries
    shares: dict[str, Tensor] | None = None  # how much of each earlier stage is in the mix: [B, 1], or [B, N] by label
    routes: dict[int, Routing] | None = None  # number of a sparse layer → what its router decided

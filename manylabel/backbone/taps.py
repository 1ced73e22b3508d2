"""Task adaptive parameter sharing (TAPS, Wallingford et al.): the baseline that AdaMV-MoE is compared with.

    W_j = W + 1[s_j ≥ τ] · ΔW_j       of task j in every linear layer

A task changes a layer for itself only where its score s_j stays above τ; each score costs λ, so it must be worth it.
The indicator is passed straight through by the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from manylabel.core.per_task import PerTaskParameters

THRESHOLD = 0.1  # τ
START = 0.2  # of every score: above the threshold, so that all layers may change to begin with


TURN: ContextVar[str | None] = ContextVar("manylabel_turn", default=None)


@contextmanager
def turn_of(task: str) -> Iterator[None]:
    """Inside, in this thread, layers compute for this task."""
    token = TURN.set(task)
    try:
        yield
    finally:
        TURN.reset(token)


class TapsLinear(nn.Linear):
    """A linear layer with a change ΔW_j for every task: `turn_of` says for which; the shared weights outside of it."""

    def __init__(self, shared: nn.Linear, tasks: Sequence[str]) -> None:
        super().__init__(shared.in_features, shared.out_features, bias=shared.bias is not None)
        self.load_state_dict(shared.state_dict())
        self.delta = PerTaskParameters({task: nn.Parameter(torch.zeros_like(self.weight)) for task in tasks})
        self.score = PerTaskParameters({task: nn.Parameter(torch.tensor(START)) for task in tasks})

    def forward(self, x: Tensor) -> Tensor:
        task = TURN.get()
        if task is None:
            return super().forward(x)
        s = self.score[task]
        chosen = (s >= THRESHOLD).to(s) + s - s.detach()  # 1[s ≥ τ], with the gradient of s
        return linear(x, self.weight + chosen * self.delta[task], self.bias)


def with_changes(body: nn.Module, tasks: Sequence[str]) -> None:
    """Give every linear layer inside `body` a change for each task."""
    for module in list(body.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, TapsLinear(child, tasks))


def taps_layers(body: nn.Module) -> Iterator[TapsLinear]:
    return (module for module in body.modules() if isinstance(module, TapsLinear))


def sharing_cost(body: nn.Module, task: str) -> Tensor:
    """mean_l |s_l| of a task: what it costs to have layers of its own."""
    scores: list[Tensor] = [layer.score[task] for layer in taps_layers(body)]
    return torch.stack(scores).abs().mean()


def is_unchanged(module: nn.Module, task: str) -> bool:
    """Whether this is such a layer, and the task uses the shared weights of it."""
    return isinstance(module, TapsLinear) and not bool(module.score[task] >= THRESHOLD)

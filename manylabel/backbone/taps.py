"""Task adaptive parameter sharing (TAPS, Wallingford et al.): the baseline that AdaMV-MoE is compared with.

    W_j = W + 1[s_j ≥ τ] · ΔW_j       of task j in every linear layer

A task changes a layer for itself only where its score s_j stays above τ; each score costs λ, so it must be worth it.
The indicator is passed straight through by the gradient. In the form of AdaMV-MoE's released code W is learned by the first
task alone and then frozen, only MLPs may be changed, and scores begin at 1 with τ = 0.05.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from manylabel.core.per_task import PerTaskParameters


@dataclass(frozen=True)
class Form:
    """Which linear layers a task may change, and how scores begin: above the threshold, so that all may change."""

    threshold: float  # τ
    start: float  # of every score
    frozen: bool  # W, but while one task is trained alone
    where: str  # part of the names of layers that may be changed


FORMS = {"taps": Form(0.1, 0.2, False, ""), "taps_released": Form(0.05, 1.0, True, ".mlp.")}

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

    def __init__(self, shared: nn.Linear, tasks: Sequence[str], form: Form) -> None:
        super().__init__(shared.in_features, shared.out_features, bias=shared.bias is not None)
        self.load_state_dict(shared.state_dict())
        self.delta = PerTaskParameters({task: nn.Parameter(torch.zeros_like(self.weight)) for task in tasks})
        self.score = PerTaskParameters({task: nn.Parameter(torch.tensor(form.start)) for task in tasks})
        self.form = form
        self.begin_phase(alone=False)

    def begin_phase(self, alone: bool) -> None:
        """`alone`: one task is trained before the others; where W is frozen afterwards, it is W that it trains."""
        self.plain = alone and self.form.frozen
        self.weight.requires_grad_(self.plain or not self.form.frozen)

    def forward(self, x: Tensor) -> Tensor:
        task = TURN.get()
        if task is None or self.plain:
            return super().forward(x)
        s = self.score[task]
        chosen = (s >= self.form.threshold).to(s) + s - s.detach()  # 1[s ≥ τ], with the gradient of s
        return linear(x, self.weight + chosen * self.delta[task], self.bias)


def with_changes(body: nn.Module, tasks: Sequence[str], form: Form) -> None:
    """Give the linear layers inside `body` a change for each task."""
    for place, module in list(body.named_modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and form.where in f"{place}.{name}":
                setattr(module, name, TapsLinear(child, tasks, form))


def taps_layers(body: nn.Module) -> Iterator[TapsLinear]:
    return (module for module in body.modules() if isinstance(module, TapsLinear))


def sharing_cost(body: nn.Module, task: str) -> Tensor:
    """mean_l |s_l| of a task: what it costs to have layers of its own."""
    scores: list[Tensor] = [layer.score[task] for layer in taps_layers(body)]
    return torch.stack(scores).abs().mean()


def is_unchanged(module: nn.Module, task: str) -> bool:
    """Whether this is such a layer, and the task uses the shared weights of it."""
    return isinstance(module, TapsLinear) and not bool(module.score[task] >= module.form.threshold)

"""Adaptive expert selection (AdaMV-MoE, Algorithm 1): every task finds during training how many experts it needs."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AdaptiveSelection(nn.Module):
    """k_j of each task j, from its own held-out loss; all tasks at once, none looks at another.

    While a task's loss has not decreased for Δn iterations (since it last did or its last growth, whichever is later):
    if its last growth brought nothing, k_j ← k_j − 1 and k_j is fixed; otherwise k_j ← k_j + 1, at most `most`.
    It decreases where it falls by the share `min_decrease`, at once or little by little; 0 = by anything, as in the
    algorithm. A growth brought something where the loss became lower than it ever was.
    The whole state is in buffers, so that a checkpoint holds it.
    """

    k: Tensor  # [T]
    best: Tensor  # [T] lowest loss so far
    mark: Tensor  # [T] the loss by which a decrease is measured
    waited: Tensor  # [T] iterations without a decrease
    improved: Tensor  # [T] bool: since the last growth
    fixed: Tensor  # [T] bool

    def __init__(self, tasks: int, most: int, patience: int, start: int = 1, min_decrease: float = 0.0) -> None:
        super().__init__()
        if not 1 <= start <= most:
            raise ValueError(f"{start} experts to begin with, of {most}")
        self.most, self.patience, self.min_decrease = most, patience, min_decrease
        self.register_buffer("k", torch.full((tasks,), start))
        self.register_buffer("best", torch.full((tasks,), torch.inf))
        self.register_buffer("mark", torch.full((tasks,), torch.inf))
        self.register_buffer("waited", torch.zeros(tasks, dtype=torch.int64))
        self.register_buffer("improved", torch.ones(tasks, dtype=torch.bool))
        self.register_buffer("fixed", torch.zeros(tasks, dtype=torch.bool))
        self.now = (start,) * tasks  # k as numbers, which a pass reads: a tensor's would stop an export
        self.register_load_state_dict_post_hook(_note)  # type: ignore[no-untyped-call]

    def note(self) -> None:
        """Let passes see the k that the buffer holds."""
        self.now = tuple(self.k.tolist())

    @torch.no_grad()
    def begin_anew(self) -> None:
        """What losses are compared with is forgotten: they start from elsewhere. Every k stays, and what is fixed."""
        self.best.fill_(torch.inf)
        self.mark.fill_(torch.inf)
        self.waited.zero_()
        self.improved.fill_(True)

    @torch.no_grad()
    def update(self, losses: Tensor, iterations: int = 1, may_grow: bool = True) -> Tensor:
        """Held-out losses [T] after so many further iterations; NaN = not measured, the task stays as it is.

        `may_grow`: whether Δn iterations are left to see what a growth brings. Returns the change of every k. [T]
        """
        before, loss = self.k.clone(), losses.to(self.best)
        for j in (~self.fixed & ~loss.isnan()).nonzero().flatten().tolist():
            self._update_one(j, loss[j], iterations, may_grow)
        self.note()
        return self.k - before

    def _update_one(self, j: int, loss: Tensor, iterations: int, may_grow: bool) -> None:
        """Algorithm 1, lines 6–18, for task j."""
        if loss < self.best[j]:
            self.best[j], self.improved[j] = loss, True
        if loss < (1 - self.min_decrease) * self.mark[j]:
            self.mark[j], self.waited[j] = loss, 0
        else:
            self.waited[j] += iterations
        if self.waited[j] < self.patience:  # it decreases, or may do so yet
            return
        if not self.improved[j]:  # the last growth brought nothing
            self.k[j] -= 1
            self.fixed[j] = True
        elif self.k[j] == self.most:
            self.fixed[j] = True
        elif may_grow:
            self.k[j] += 1
            self.improved[j], self.waited[j], self.mark[j] = False, 0, self.best[j]


def _note(selection: AdaptiveSelection, _: object) -> None:
    """What was loaded is what passes see."""
    selection.note()

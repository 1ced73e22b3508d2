"""Adaptive expert selection (AdaMV-MoE, Algorithm 1): every task finds during training how many experts it needs."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AdaptiveSelection(nn.Module):
    """k_j of each task j, from its own held-out loss; all tasks at once, none looks at another.

    While a task's loss has not decreased for Δn iterations (since it last did or its last growth, whichever is later):
    if its last growth brought nothing, k_j ← k_j − 1 and k_j is fixed; otherwise k_j ← k_j + 1, at most `most`.
    It decreases where it falls by the share `least`, at once or little by little; 0 = by anything, as in the algorithm.
    A growth brought something where the loss became lower than it ever was.
    The whole state is in buffers, so that a checkpoint holds it.
    """

    k: Tensor  # [T]
    best: Tensor  # [T] lowest loss so far
    mark: Tensor  # [T] the loss by which a decrease is measured
    waited: Tensor  # [T] iterations without a decrease
    improved: Tensor  # [T] bool: since the last growth
    fixed: Tensor  # [T] bool

    def __init__(self, tasks: int, most: int, patience: int, start: int = 1, least: float = 0.0) -> None:
        super().__init__()
        if not 1 <= start <= most:
            raise ValueError(f"{start} experts to begin with, of {most}")
        self.most, self.patience, self.least = most, patience, least
        self.register_buffer("k", torch.full((tasks,), start))
        self.register_buffer("best", torch.full((tasks,), torch.inf))
        self.register_buffer("mark", torch.full((tasks,), torch.inf))
        self.register_buffer("waited", torch.zeros(tasks, dtype=torch.int64))
        self.register_buffer("improved", torch.ones(tasks, dtype=torch.bool))
        self.register_buffer("fixed", torch.zeros(tasks, dtype=torch.bool))

    @torch.no_grad()
    def update(self, losses: Tensor, iterations: int = 1, may_grow: bool = True) -> Tensor:
        """Held-out losses [T] after so many further iterations; NaN = not measured, the task stays as it is.

        `may_grow`: whether Δn iterations are left to see what a growth brings. Returns the change of every k. [T]
        """
        loss = losses.to(self.best)
        active = ~self.fixed & ~loss.isnan()
        better = active & (loss < self.best)
        self.best.copy_(torch.where(better, loss, self.best))
        self.improved |= better
        decreased = active & (loss < (1 - self.least) * self.mark)
        self.mark.copy_(torch.where(decreased, loss, self.mark))
        self.waited.copy_(torch.where(decreased, 0, self.waited + iterations * active))
        stuck = active & (self.waited >= self.patience)
        failed = stuck & ~self.improved  # the last growth brought nothing
        full = stuck & self.improved & (self.k == self.most)
        grows = stuck & self.improved & ~full & may_grow
        change = grows.long() - failed.long()
        self.k += change
        self.fixed |= failed | full
        self.improved &= ~grows
        self.waited.masked_fill_(grows, 0)
        self.mark.copy_(torch.where(grows, self.best, self.mark))
        return change

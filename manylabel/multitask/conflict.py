"""How hard each task pulls the weights that all share, and whether into different directions: their gradients in the last
block, by length and cosine (Fig. 7)."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from manylabel.multitask.model import MultiTaskModel


class Conflict:
    """Call `after(task)` behind every task's backward pass of a step; then it compares what each one added."""

    def __init__(self, model: MultiTaskModel) -> None:
        last = model.vit.blocks[-1]
        owned = {id(p) for name, p in model.named_parameters() if model.owner(name) is not None}
        self.shared = [p for p in last.parameters() if p.requires_grad and id(p) not in owned]
        self.total = self._now()
        self.added: dict[str, Tensor] = {}

    def _now(self) -> Tensor:
        return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in self.shared])

    def after(self, task: str) -> None:
        now = self._now()
        self.added[task], self.total = now - self.total, now

    def cosines(self) -> dict[str, float]:
        """'a, b' → cosine; a task without any gradient there is left out."""
        found = {}
        for a, b in itertools.combinations(self.added, 2):
            cosine = torch.nn.functional.cosine_similarity(self.added[a], self.added[b], dim=0)
            if self.added[a].any() and self.added[b].any():
                found[f"{a}, {b}"] = round(float(cosine), 5)
        return found

    def lengths(self) -> dict[str, float]:
        """How hard each task pulls, its weight included."""
        return {task: float(f"{float(added.norm()):.4g}") for task, added in self.added.items()}

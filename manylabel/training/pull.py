"""How hard each task pulls the weights that all share, and whether into different directions: their gradients in the last
layers that have matrices, by length and cosine; of a transformer in its attention and norms (AdaMV-MoE, Fig. 7)."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from manylabel.model import Model


class Pull:
    """Call `after(task)` behind every backward pass of a step; then it compares what each task added."""

    def __init__(self, model: Model) -> None:
        self.shared = _last_shared(model)
        self.total = self._now()
        self.added: dict[str, Tensor] = {}

    def _now(self) -> Tensor:
        found = [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in self.shared]
        return torch.cat(found) if found else torch.zeros(0)

    def after(self, task: str, scaler: Any = None) -> None:
        """`scaler`: of mixed precision, by which gradients are too large now."""
        now = self._now()
        more = (now - self.total) / (1.0 if scaler is None else scaler.get_scale())
        self.added[task], self.total = self.added[task] + more if task in self.added else more, now

    def cosines(self) -> dict[str, float]:
        """'a, b' → cosine; a task without any gradient there is left out."""
        found = {}
        for a, b in itertools.combinations(self.added, 2):
            if self.added[a].any() and self.added[b].any() and self._finite(a, b):
                cosine = torch.nn.functional.cosine_similarity(self.added[a], self.added[b], dim=0)
                found[f"{a}, {b}"] = round(float(cosine), 5)
        return found

    def lengths(self) -> dict[str, float]:
        """How hard each task pulls, its weight included."""
        if not self.shared:
            return {}
        return {task: float(f"{float(g.norm()):.4g}") for task, g in self.added.items() if self._finite(task)}

    def _finite(self, *tasks: str) -> bool:
        """Half precision overflows at times, and its step is left out."""
        return all(bool(torch.isfinite(self.added[task]).all()) for task in tasks)


def _last_shared(model: Model) -> list[Tensor]:
    """Trained weights of the backbone's last group of layers that has a matrix; none where nothing shared is trained.

    Without what the body says tasks use in different ways (experts), so that dense and sparse ones are compared alike.
    """
    owned, groups = model.owners(), model.backbone.layer_groups()
    common = getattr(model.backbone.body, "common", lambda _: True)
    shared = {
        name: p
        for name, p in model.backbone.body.named_parameters()
        if p.requires_grad and f"backbone.body.{name}" not in owned and name in groups and common(name)
    }
    matrices = [groups[name] for name, p in shared.items() if p.ndim > 1]
    return [p for name, p in shared.items() if groups[name] == max(matrices)] if matrices else []

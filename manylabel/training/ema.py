"""An exponential moving average of the trained weights: the ones that are judged and kept when it is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Ema:
    """average ← d·average + (1 − d)·weight, with d growing to `decay` so that early averages are not stuck at the start."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self.model = model
        self.average = {name: tensor.detach().clone() for name, tensor in self._tracked()}

    def _tracked(self) -> list[tuple[str, Tensor]]:
        """Trained parameters, and the statistics of norms that move."""
        trained = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        if not trained:
            return []
        moving = {
            f"{prefix}.{n}" if prefix else n
            for prefix, module in self.model.named_modules()
            if any(p.requires_grad for p in module.parameters(recurse=False))
            for n, b in module.named_buffers(recurse=False)
            if b.is_floating_point()
        }
        return trained + [(n, b) for n, b in self.model.named_buffers() if n in moving]

    @torch.no_grad()
    def update(self) -> None:
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        tracked = self._tracked()
        averages = [self.average[name] for name, _ in tracked]
        torch._foreach_lerp_(averages, [tensor.detach() for _, tensor in tracked], 1 - decay)

    @contextmanager
    @torch.no_grad()
    def applied(self) -> Iterator[None]:
        """The model has the averaged weights inside the block, and its own again after it."""
        tracked = self._tracked()
        own = {name: tensor.detach().clone() for name, tensor in tracked}
        for name, tensor in tracked:
            tensor.copy_(self.average[name])
        try:
            yield
        finally:
            for name, tensor in tracked:
                tensor.copy_(own[name])

"""An exponential moving average of the trained weights: the ones that are judged and kept when it is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Ema:
    """average ← d·average + (1 − d)·weight; with a `ramp`, d grows to `decay` from small values."""

    def __init__(self, model: nn.Module, decay: float, ramp: bool = True) -> None:
        self.decay, self.ramp = decay, ramp
        self.steps = 0
        self.tracked = _tracked(model)  # the live tensors, by name
        self.average = {name: tensor.clone() for name, tensor in self.tracked.items()}

    @torch.no_grad()
    def update(self) -> None:
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps)) if self.ramp else self.decay
        torch._foreach_lerp_([self.average[name] for name in self.tracked], list(self.tracked.values()), 1 - decay)

    @contextmanager
    @torch.no_grad()
    def applied(self) -> Iterator[None]:
        """The model has the averaged weights inside the block, and its own again after it."""
        own = {name: tensor.clone() for name, tensor in self.tracked.items()}
        for name, tensor in self.tracked.items():
            tensor.copy_(self.average[name])
        try:
            yield
        finally:
            for name, tensor in self.tracked.items():
                tensor.copy_(own[name])


def _tracked(model: nn.Module) -> dict[str, Tensor]:
    """Trained parameters, and the statistics of norms that move with them."""
    trained = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    moving = {
        f"{prefix}.{name}" if prefix else name: buffer
        for prefix, module in model.named_modules()
        if any(p.requires_grad for p in module.parameters(recurse=False))
        for name, buffer in module.named_buffers(recurse=False)
        if buffer.is_floating_point()
    }
    return trained | moving

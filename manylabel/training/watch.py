"""Whoever looks at a model while it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch

from manylabel.model import Model
from manylabel.training.work import TaskAtWork


class Watch(Protocol):
    def look(self, model: Model, works: Mapping[str, TaskAtWork], step: int, device: torch.device) -> None:
        """Write down what it does now."""

    def forget_after(self, step: int) -> None:
        """A resumed run writes what comes after its checkpoint anew."""

"""What a head is: Features to one logit per label. To add one, copy linear.py and import it in __init__.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from manylabel.features import FINAL, Features
from manylabel.registry import Registry

HEADS = Registry("head")


class Head(nn.Module):
    """Built as `cls(options, channels={stage: C}, num_labels=N)`; gives logits [B, N], never a sigmoid."""

    Options: type
    stages: tuple[str, ...] = (FINAL,)  # which stages of the backbone it looks at
    pooled: bool = False  # True when it only needs the spatial mean of them, so that a feature cache can be small

    def __init__(self, options: Any, *, channels: Mapping[str, int], num_labels: int) -> None:
        super().__init__()
        self.options = options
        self.num_labels = num_labels

    def forward(self, features: Features) -> Tensor:
        raise TypeError(f"{type(self).__name__} defines no forward pass")

"""What a neck is: Features to Features, between backbone and head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from manylabel.features import Features
from manylabel.registry import Registry

NECKS = Registry("neck")


class Neck(nn.Module):
    """Built as `cls(options, channels={stage: C})`; `channels` afterwards says what it gives."""

    Options: type
    stages: tuple[str, ...] = ()  # which stages of the backbone it needs beside the head's own
    pooled: bool = False  # True when spatial means of the stages are all it needs

    def __init__(self, options: Any, *, channels: Mapping[str, int]) -> None:
        super().__init__()
        self.options = options
        self.channels = dict(channels)

    def forward(self, features: Features) -> Features:
        raise TypeError(f"{type(self).__name__} defines no forward pass")


@NECKS.register("none")
class NoNeck(Neck):
    """Features go to the head as they are."""

    pooled = True

    @dataclass(frozen=True)
    class Options:
        pass

    def forward(self, features: Features) -> Features:
        return features

"""What a neck is: Features to weighted Features, between backbone and head. To add one: CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from manylabel.core.trace import Trace
from manylabel.features import Features
from manylabel.registry import Registry

NECKS = Registry("neck")

# The head answers for each of the Features, and its answers are added up, each times its weight: [B, N], or None for 1.
Weighted = list[tuple[Tensor | None, Features]]


class Neck(nn.Module):
    """Built as `cls(options, channels={stage: C}, num_labels=N)`; `channels` afterwards says what it gives."""

    Options: type
    stages: tuple[str, ...] = ()  # which stages of the backbone it needs beside the head's own
    mapped: frozenset[str] = frozenset()  # those of them of which it needs more than the mean over all places

    same_for_all_labels: bool = True  # False when it learns something for each label

    def __init__(self, options: Any, *, channels: Mapping[str, int], num_labels: int) -> None:
        super().__init__()
        self.options = options
        self.channels = dict(channels)

    def reads(self, head_stages: Iterable[str]) -> set[str]:
        """The stages of the backbone that matter when the head looks at these."""
        return {*self.stages, *head_stages}

    def forward(self, features: Features, trace: Trace | None = None) -> Weighted:
        """The backbone's own output, or what is nearest to it, comes first. It never calls a head."""
        raise TypeError(f"{type(self).__name__} defines no forward pass")


@NECKS.register("none")
class NoNeck(Neck):
    """Features go to the head as they are."""

    @dataclass(frozen=True)
    class Options:
        pass

    def forward(self, features: Features, trace: Trace | None = None) -> Weighted:
        return [(None, features)]

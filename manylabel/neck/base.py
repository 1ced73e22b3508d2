"""What a neck is: Features to Features, between backbone and head. To add one, import it in __init__.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from manylabel.features import Features
from manylabel.registry import Registry

NECKS = Registry("neck")


class Neck(nn.Module):
    """Built as `cls(options, channels={stage: C}, num_labels=N)`; `channels` afterwards says what it gives."""

    Options: type
    stages: tuple[str, ...] = ()  # which stages of the backbone it needs beside the head's own
    mapped: frozenset[str] = frozenset()  # those of them of which it needs more than the mean over all places

    same_for_all_labels: bool = True  # False when it learns something for each label
    last_shares: dict[str, Tensor] | None = None  # what `shares` says of the last batch that was judged

    def __init__(self, options: Any, *, channels: Mapping[str, int], num_labels: int) -> None:
        super().__init__()
        self.options = options
        self.channels = dict(channels)

    def reads(self, head_stages: Iterable[str]) -> set[str]:
        """The stages of the backbone that matter when the head looks at these."""
        return {*self.stages, *head_stages}

    def forward(self, features: Features) -> Features:
        raise TypeError(f"{type(self).__name__} defines no forward pass")

    def logits(self, head: Callable[[Features], Tensor], features: Features) -> Tensor:
        """What head and neck say together [B, N]; a neck that is not the same for all labels does more than this."""
        return head(self(features))

    def shares(self, features: Features) -> dict[str, Tensor]:
        """How much each earlier stage has in the mix, in 0..1: stage → [B, 1], or [B, N] for each label."""
        return {}


@NECKS.register("none")
class NoNeck(Neck):
    """Features go to the head as they are."""

    @dataclass(frozen=True)
    class Options:
        pass

    def forward(self, features: Features) -> Features:
        return features

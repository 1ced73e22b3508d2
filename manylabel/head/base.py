"""What a head is: Features to one logit per label. To add one: CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from manylabel.config import option
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.expert import Gates
from manylabel.features import FINAL, Features
from manylabel.head.prior import Prior
from manylabel.registry import Registry

HEADS = Registry("head")


@dataclass(frozen=True)
class LabelKnowledge:
    """What a head may know of its labels beside their number; most heads ask for nothing of it."""

    vectors: np.ndarray | None = None  # [N, d_w] text vectors
    together: np.ndarray | None = None  # [N, N] training images that have both labels
    unseen: np.ndarray | None = None  # [N] bool: labels that training never tells
    restored: bool = False  # stored weights follow: what is not known here comes with them


NOTHING = LabelKnowledge()


@dataclass(frozen=True)
class HeadOptions:
    """A setting of every head of ours."""

    prior_bias: bool = option(
        True, "begin with biases that say how often each label is there in the training images (papers: false)"
    )


class Head(nn.Module):
    """Built as `cls(options, channels={stage: C}, num_labels=N)`; answers logits [B, N], never a sigmoid."""

    Options: type
    stages: tuple[str, ...] = (FINAL,)  # which stages of the backbone it looks at
    pooled: bool = False  # True when it only needs the spatial mean of them, so that a feature cache can be small
    can_be_zero_shot: bool = False  # True when some of its settings make it so:
    zero_shot: bool = False  # True when it can be given other labels than those it was trained with
    adapts: bool = False  # True when it wants the labels' held-out losses after every epoch (observe)
    recipe: str | None = None  # the recipe that suits it when somebody asks for the head and nothing else

    def __init__(
        self, options: Any, *, channels: Mapping[str, int], num_labels: int, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__()
        self.options = options
        self.num_labels = num_labels

    @classmethod
    def variant(cls, options: Any) -> type[Head]:
        """For a name that stands for several classes: the one that these options mean."""
        return cls

    @property
    def vectors(self) -> np.ndarray | None:
        """Text vectors of the labels [N, d_w], where it works with them."""
        return None

    @property
    def unseen(self) -> np.ndarray | None:
        """[N] bool: labels that training never told; None where it told them all."""
        return None

    @classmethod
    def knowledge_of(cls, state: Mapping[str, Tensor], num_labels: int) -> LabelKnowledge:
        """What must be known to build the head that these stored weights fit into."""
        return LabelKnowledge(restored=True)

    @property
    def query_of_label(self) -> Tensor | None:
        """[N]: which query answers for each label; None for heads without queries."""
        return None

    @property
    def gates(self) -> Gates | None:
        """Whose gates a trace of this head shows, and what they choose among; None for heads without experts."""
        return None

    def expert_similarity(self) -> tuple[float, ...]:
        """Of each layer with gates: how alike the experts are that a gate chooses among; 1 = all the same."""
        return ()

    def expect(self, prior: Prior) -> None:
        """Begin with these logits for an image of which nothing is known; for heads with biases."""

    def observe(self, losses: np.ndarray) -> None:
        """Held-out losses [N] of the labels after an epoch; NaN where there is none. For heads that adapt to them."""

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        """`targets` are for heads that make their losses themselves. Nothing is kept of a pass: what happened on the way
        is written into `trace`, if there is one."""
        raise TypeError(f"{type(self).__name__} defines no forward pass")

    def relabel(self, vectors: np.ndarray) -> None:
        """From now on give the logits of these labels, by their text vectors [n, d_w]."""
        raise ConfigError(
            "this model knows its own labels only; labels that were never trained need a zero-shot head "
            "(manylabel train … --recipe ml-decoder-zero-shot)"
        )

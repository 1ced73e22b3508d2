"""backbone → neck → head. The whole model is this line."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from manylabel.backbone import Backbone
from manylabel.config import Config
from manylabel.core.contract import untouched
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import ENTRY, FINAL, Features
from manylabel.head import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.neck import NECKS, Neck


class Model(nn.Module):
    """images [B, 3, H, W], or features that were computed before → Output with logits [B, N]"""

    def __init__(
        self, config: Config, num_labels: int, load_weights: bool = True, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__()
        self.backbone = Backbone(config.backbone, load_weights)
        self.neck: Neck = NECKS.build(config.neck, channels=self.backbone.channels, num_labels=num_labels)
        self.head: Head = HEADS.build(
            config.head, channels=self.neck.channels, num_labels=num_labels, knowledge=knowledge
        )
        self.backbone.select(self.neck.reads(self.head.stages))
        if self.head.zero_shot and not self.neck.same_for_all_labels:
            raise ConfigError(
                "neck.share=label learns something for each label, so it does not go with a zero-shot head"
            )

    @property
    def pooled(self) -> frozenset[str]:
        """The stages of which neck and head look at nothing but the mean over all places. A head that looks at places
        measures its grids by that of the final stage."""
        mapped = self.neck.mapped if self.head.pooled else self.neck.mapped | {*self.head.stages, FINAL}
        kept = self.backbone.stages if self.backbone.cut is None else self.backbone.before_cut
        return frozenset(kept) - mapped

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What `features` gives, in order."""
        backbone = self.backbone
        return backbone.stages if backbone.cut is None else (*backbone.before_cut, ENTRY)

    def features(self, images: Tensor, trace: Trace | None = None) -> Features:
        """What a cache may hold: everything that training does not change, as small as neck and head allow."""
        if self.backbone.cut is not None:
            return self._small(self.backbone.enter(images))
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.backbone.frozen):
            features = self.backbone(images, trace)
        return self._small(features)

    def _small(self, features: Features) -> Features:
        pooled = self.pooled
        small = {k: m.mean(dim=(2, 3), keepdim=True) for k, m in features.stages.items() if k in pooled}
        return features.but(**small)

    def compute(self, inputs: Tensor | Features, trace: Trace | None = None) -> Output:
        """What forward gives; mixed precision, which a trainer wraps around forward, stays outside."""
        if isinstance(inputs, Features):
            features = self.backbone.go_on(inputs, trace) if ENTRY in inputs.stages else inputs
        else:
            features = self.backbone(inputs, trace) if self.backbone.cut is not None else self.features(inputs, trace)
        return self.answer(features, trace)

    def answer(self, features: Features, trace: Trace | None = None) -> Output:
        """neck → head, of all the stages that they read."""
        return answer_of(self.neck, self.head, features, trace)

    def forward(self, inputs: Tensor | Features, trace: Trace | None = None) -> Output:
        return self.compute(inputs, trace)

    def observe(self, losses: np.ndarray) -> None:
        """Held-out losses [N] of the labels: what adapts to them does so now, for it flows into no forward pass."""
        self.head.observe(losses)

    @torch.no_grad()
    def check(self) -> None:
        """One blank image in evaluation: a part that breaks its contract is named before anything is trained."""
        size, training, labels = self.backbone.preprocess.size, self.training, self.head.num_labels
        self.eval()
        features = self._small(self.backbone(next(self.parameters()).new_zeros(1, 3, size, size)))
        with untouched(self):
            parts = self.neck(features)
            check_parts(parts, type(self.neck).__name__)
            check_output(self.head(parts[0][1]), type(self.head).__name__, labels)
            self.answer(features, Trace(gates=[], attention=[], shares={}))
        self.train(training)

    @torch.no_grad()
    def multiply_adds(self) -> int:
        """Of one image, from the pixels to the logits (torch counts two operations for each)."""
        size, training = self.backbone.preprocess.size, self.training
        example = next(self.parameters()).new_zeros(1, 3, size, size)
        self.eval()
        with FlopCounterMode(display=False) as counter:
            self.answer(self.backbone(example))
        self.train(training)
        operations: int = counter.get_total_flops()
        return operations // 2

    def rates(self, options: Any) -> dict[str, float]:
        """The backbone's rates as shares of the head's: earlier layers may learn more slowly (optimiser options)."""
        depth = self.backbone.layer_groups()
        deepest = max(depth.values())
        return {
            f"backbone.body.{name}": options.backbone_rate * options.layer_decay ** (deepest - group)
            for name, group in depth.items()
        }

    def parameter_counts(self) -> tuple[int, int]:
        """(all, trained)"""
        sizes = [(p.numel(), p.requires_grad) for p in self.parameters()]
        return sum(n for n, _ in sizes), sum(n for n, trained in sizes if trained)


def check_parts(parts: Any, neck: str) -> None:
    """What a neck gives must be weighted features."""
    fine = isinstance(parts, list) and len(parts) > 0 and all(isinstance(p, tuple) and len(p) == 2 for p in parts)
    if not fine or not all(isinstance(features, Features) for _, features in parts):
        raise ConfigError(f"neck {neck} gives {_named(parts)}; forward must give a list of (weight or None, Features)")


def check_output(output: Any, head: str, labels: int) -> None:
    """What a head gives for one image must be an Output with a logit for each label."""
    if not isinstance(output, Output) or not isinstance(output.answer, Tensor):
        raise ConfigError(
            f"head {head} gives {_named(output)}; forward must give Output(logits) (manylabel.core.output)"
        )
    if output.answer.shape != (1, labels):
        shape = list(output.answer.shape)
        raise ConfigError(
            f"head {head} gives logits of shape {shape} for 1 image and {labels} labels, not [1, {labels}]"
        )


def _named(value: Any) -> str:
    if isinstance(value, Output):
        return f"an Output with {_named(value.answer)}"
    return f"a {type(value).__name__}"


def answer_of(neck: nn.Module, head: nn.Module, features: Features, trace: Trace | None = None) -> Output:
    """What the head says of everything that the neck gives it, blended."""
    parts = neck(features, trace)
    traces = [trace] + [None] * (len(parts) - 1)  # the first is the backbone's own output, or the nearest to it
    outputs = [head(part, trace=each) for (_, part), each in zip(parts, traces, strict=True)]
    return blend(outputs, [weight for weight, _ in parts])._replace(costs=features.costs)


def blend(outputs: Sequence[Output], weights: Sequence[Tensor | None]) -> Output:
    """Answers added up, each times its weight [B, N]; what they cost beside is told by the first."""
    if len(outputs) == 1 and weights[0] is None:
        return outputs[0]
    parts = [o.logits if w is None else w * o.logits for o, w in zip(outputs, weights, strict=True)]
    return outputs[0]._replace(answer=functools.reduce(torch.add, parts))

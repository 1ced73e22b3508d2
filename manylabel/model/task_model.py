"""backbone → neck → head of one task."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from manylabel.backbone import Backbone
from manylabel.core.contract import untouched
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.detect import Detector
from manylabel.features import ENTRY, FINAL, Features
from manylabel.head import Head
from manylabel.model.contract import check_features, check_output, check_parts
from manylabel.neck import Neck
from manylabel.preprocess import Preprocess


class TaskModel(nn.Module):
    """images [B, 3, H, W] of one task, or features of them that were computed before → Output.

    Of a model with several tasks it is one path; the backbone is the one that all of them share.
    """

    head: Any  # a Head, or a Detector

    def __init__(self, name: str, backbone: Backbone, neck: Neck, head: Head | Detector) -> None:
        super().__init__()
        self.name, self.backbone, self.neck, self.head = name, backbone, neck, head

    @property
    def preprocess(self) -> Preprocess:
        """How an image of this task becomes the input."""
        return self.backbone.prepared(self.name)

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
            return self._small(self.backbone.enter(images, self.name))
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.backbone.frozen):
            features = self.backbone(images, trace, self.name)
        return self._small(features)

    def _small(self, features: Features) -> Features:
        pooled = self.pooled
        small = {k: m.mean(dim=(2, 3), keepdim=True) for k, m in features.stages.items() if k in pooled}
        return features.but(**small)

    def forward(self, inputs: Tensor | Features, targets: Any = None, trace: Trace | None = None) -> Output:
        if isinstance(inputs, Features):
            behind_the_cut = ENTRY in inputs.stages
            features = self.backbone.go_on(inputs, trace, self.name) if behind_the_cut else inputs
        elif self.backbone.cut is not None:
            features = self.backbone(inputs, trace, self.name)
        else:
            features = self.features(inputs, trace)
        return self.answer(features, targets, trace)

    def answer(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        """neck → head, of all the stages that they read."""
        return answer_of(self.neck, self.head, features, targets, trace)

    def observe(self, losses: np.ndarray) -> None:
        """Held-out losses [N] of the labels: what adapts to them does so now, for it flows into no forward pass."""
        self.head.observe(losses)

    @torch.no_grad()
    def check(self) -> None:
        """One blank image in evaluation: a part that breaks its contract is named before anything is trained."""
        size, training = self.preprocess.size, self.head.training
        self.eval()
        blank = next(self.parameters()).new_zeros(1, 3, size, size)
        with untouched(self):
            features = self.backbone(blank, task=self.name)
            check_features(features, self.backbone)
            parts = self.neck(self._small(features))
            check_parts(parts, self.neck, self.head.num_labels)
            for _, part in parts:
                check_output(self.head(part), type(self.head).__name__, self.head.num_labels)
            self.answer(features, trace=Trace(gates=[], attention=[], shares={}))
        self.train(training)

    @torch.no_grad()
    def multiply_adds(self) -> tuple[int, int]:
        """Of one image in (the backbone, neck and head), with the experts that the task uses; torch counts two operations
        for each. What a detector costs depends on what it finds: here as much as it takes at most."""
        size, training = self.preprocess.size, self.head.training
        example = next(self.parameters()).new_zeros(1, 3, size, size)
        self.eval()
        with FlopCounterMode(display=False) as of_backbone:
            features = self.backbone(example, task=self.name)
        with FlopCounterMode(display=False) as of_head:
            if isinstance(self.head, Detector):
                self.head.at_most(self.neck(features)[0][1].final, (size, size))
            else:
                self.answer(features)
        self.train(training)
        return of_backbone.get_total_flops() // 2, of_head.get_total_flops() // 2

    def parameter_counts(self) -> tuple[int, int]:
        """(all, trained)"""
        return counts_of(self)


def counts_of(module: nn.Module) -> tuple[int, int]:
    """Parameters: (all, trained)"""
    sizes = [(p.numel(), p.requires_grad) for p in module.parameters()]
    return sum(n for n, _ in sizes), sum(n for n, trained in sizes if trained)


def answer_of(
    neck: nn.Module, head: nn.Module, features: Features, targets: Any = None, trace: Trace | None = None
) -> Output:
    """What the head says of everything that the neck gives it, blended."""
    parts = neck(features, trace)
    traces = [trace] + [None] * (len(parts) - 1)  # the first is the backbone's own output, or the nearest to it
    outputs = [head(part, targets, each) for (_, part), each in zip(parts, traces, strict=True)]
    return blend(outputs, [weight for weight, _ in parts])._replace(costs=features.costs)


def blend(outputs: Sequence[Output], weights: Sequence[Tensor | None]) -> Output:
    """Answers added up, each times its weight [B, N]; what they cost beside is told by the first."""
    if len(outputs) == 1 and weights[0] is None:
        return outputs[0]
    parts = [o.logits if w is None else w * o.logits for o, w in zip(outputs, weights, strict=True)]
    return outputs[0]._replace(answer=functools.reduce(torch.add, parts))

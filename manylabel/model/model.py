"""images → backbone → {task: neck → head}. What the tasks share is the backbone."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from manylabel.backbone import Backbone
from manylabel.config import Config, TaskConfig
from manylabel.core.output import Output
from manylabel.core.per_task import PerTask, owners
from manylabel.core.trace import Trace
from manylabel.detect import DETECTORS
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.model.neck import build_neck
from manylabel.model.task_model import TaskModel, counts_of
from manylabel.neck import Neck


class Model(nn.Module):
    """`num_labels`: of each task; of a run with one task its number alone. `knowledge`: what heads know of their labels."""

    def __init__(
        self,
        config: Config,
        num_labels: int | Mapping[str, int],
        load_weights: bool = True,
        knowledge: LabelKnowledge | Mapping[str, LabelKnowledge] = NOTHING,
    ) -> None:
        super().__init__()
        self.config, self.tasks = config, tuple(config.tasks)
        counts = num_labels if isinstance(num_labels, Mapping) else dict.fromkeys(self.tasks, num_labels)
        known = knowledge if isinstance(knowledge, Mapping) else dict.fromkeys(self.tasks, knowledge)
        sides = {name: task.image_size for name, task in config.tasks.items()}
        self.backbone = Backbone(config.backbone, load_weights, sides)
        self.necks, self.heads = PerTask(), PerTask()
        for name, task in config.tasks.items():
            neck = build_neck(task.neck, self.backbone.reader, counts[name])
            self.necks[name] = neck
            self.heads[name] = self._head(task, neck, counts[name], known[name])
        self._paths = {name: self._path(name) for name in self.tasks}
        self.select()
        adapt = config.train.adapt
        if self.backbone.adapts:
            self.backbone.body.adapt(adapt.patience, adapt.min_decrease, adapt.max_experts)

    def _head(self, task: TaskConfig, neck: Neck, labels: int, knowledge: LabelKnowledge) -> nn.Module:
        if task.head.name in DETECTORS:
            stride = self.backbone.stride
            detector: nn.Module = DETECTORS.build(task.head, channels=neck.channels, num_labels=labels, stride=stride)
            return detector
        head: Head = HEADS.build(task.head, channels=neck.channels, num_labels=labels, knowledge=knowledge)
        if head.zero_shot and not neck.same_for_all_labels:
            raise ConfigError(
                "neck.share=label learns something for each label, so it does not go with a zero-shot head"
            )
        return head

    def _path(self, name: str) -> TaskModel:
        return TaskModel(name, self.backbone, self.necks[name], self.heads[name])  # type: ignore[arg-type]

    def select(self) -> None:
        """Let the backbone give all stages that some neck or head reads."""
        self.backbone.select({stage for path in self._paths.values() for stage in path.neck.reads(path.head.stages)})

    def on(self, backbone: Backbone) -> Model:
        """The same necks and heads on another backbone."""
        other = copy.copy(self)
        other._modules = {**self._modules, "backbone": backbone}
        other._paths = {name: other._path(name) for name in other.tasks}
        other.select()
        return other

    def task(self, name: str) -> TaskModel:
        """The path of one task."""
        return self._paths[self.backbone.known(name)]

    @property
    def only(self) -> TaskModel:
        """The path of a model with one task."""
        (path,) = self._paths.values()
        return path

    def check(self) -> None:
        """Stop at a part that breaks its contract, before anything is trained."""
        for path in self._paths.values():
            path.check()

    def forward(self, inputs: Tensor | Features, task: str, targets: Any = None, trace: Trace | None = None) -> Output:
        """Images [B, 3, S, S] of a task, or features of them → logits [B, N]; of a detector its losses where it is given
        targets, or its detections."""
        output: Output = self.task(task)(inputs, targets, trace)
        return output

    # --- whose a parameter is, and how many there are -------------------------------------------------------------------

    def owners(self) -> dict[str, str]:
        """Parameter → its task; those that are not here are shared."""
        return owners(self)

    def rates(self, options: Any) -> dict[str, float]:
        """Shares of the highest rate: less in the backbone, and in its earlier layers; a task's own for its parts."""
        depth = self.backbone.layer_groups()
        deepest = max(depth.values())
        found = {
            f"backbone.body.{name}": options.backbone_rate * options.layer_decay ** (deepest - group)
            for name, group in depth.items()
        }
        for name, task in self.owners().items():
            found[name] = found.get(name, 1.0) * self.config.tasks[task].lr_scale
        return found

    def parameter_counts(self) -> tuple[int, int]:
        """(all, trained)"""
        return counts_of(self)

    def active_parameters(self, task: str, within: str = "") -> int:
        """Parameters that a prediction of this task uses for one token: k of E experts, its own parts, what is shared.
        `within`: of a part of the model only, e.g. "backbone."."""
        whose, body = self.owners(), self.backbone.body
        total = 0.0
        for name, parameter in self.named_parameters():
            if whose.get(name, task) == task and name.startswith(within):
                inside = name.removeprefix("backbone.body.")
                partly = hasattr(body, "active_share") and inside != name
                total += parameter.numel() * (body.active_share(inside, task) if partly else 1)
        return round(total)

    def experts(self, task: str) -> int:
        """How many experts a token of this task uses now; 1 where there are none."""
        return int(self.backbone.body.k(task)) if self.backbone.adapts else 1


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; the mode is as it was afterwards."""
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(before)

"""vision transformer → {task: head}. Experts are shared; embeddings, routers and heads belong to the tasks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from manylabel.backbone.moe_vit import MoeViT
from manylabel.backbone.stem import Stem
from manylabel.backbone.taps import is_unchanged, with_changes
from manylabel.backbone.vit_size import size_of
from manylabel.backbone.vit_weights import begin_with
from manylabel.config import MultiTaskConfig
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.detect import DETECTORS, Detector
from manylabel.error import ConfigError
from manylabel.expert import AdaptiveSelection
from manylabel.features import Features
from manylabel.head import HEADS, Head
from manylabel.preprocess import Preprocess
from manylabel.suggest import closest
from manylabel.task import kind_of

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet


class MultiTaskModel(nn.Module):
    """`num_labels` says of every task how many labels it has."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: MultiTaskConfig, num_labels: Mapping[str, int], load_weights: bool = True) -> None:
        super().__init__()
        self.config, self.tasks = config, tuple(config.tasks)
        size = size_of(config.vit)
        sides = {name: task.image_size for name, task in config.tasks.items()}
        stem = Stem(config.vit.stem, config.vit.patch, load_weights) if config.vit.stem else None
        self.vit = MoeViT(size, config.vit.patch, config.experts, sides, config.vit.drop_path, stem)
        self.vit.recompute = config.vit.recompute
        pixels = begin_with(self.vit, config.vit.weights) if config.vit.weights is not None and load_weights else None
        if config.experts.sharing == "taps":
            with_changes(self.vit.blocks, self.tasks)
        self.heads = nn.ModuleDict({name: self._head(name, num_labels[name]) for name in self.tasks})
        if config.experts.sharing == "experts" and not self.vit.sparse:
            raise ConfigError(
                f"experts.where={config.experts.where} leaves none of {size.layers} layers with experts; use more layers, "
                "experts.where=all, or experts.sharing=dense"
            )
        c, most = config.selection, config.experts.count
        if self.vit.sparse and c.k > most:
            raise ConfigError(f"selection.k: {c.k} experts to begin with, where a layer has {most}")
        k, limit = (c.k, min(c.most or most, most)) if self.vit.sparse else (1, 1)  # a dense network is one for all
        self.selection = AdaptiveSelection(len(self.tasks), limit, c.patience, k, c.least)
        mean, std = (pixels or (MEAN, STD)) if stem is None else ((0.0,) * 3, (1.0,) * 3)  # a stem does this by itself
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def _head(self, name: str, labels: int) -> Head | Detector:
        task = self.config.tasks[name]
        if not kind_of(task).finds_objects:
            head: Head = HEADS.build(task.head, channels=self.vit.channels, num_labels=labels)
            return head
        detector: Detector = DETECTORS.build(
            task.detector, channels=self.vit.size.width, num_labels=labels, patch=self.config.vit.patch
        )
        return detector

    def head(self, task: str) -> Any:
        """A Head, or a Detector."""
        return self.heads[task]

    def k(self, task: str) -> int:
        """How many experts a token of this task uses now."""
        return int(self.selection.k[self.number(task)])

    def number(self, task: str) -> int:
        if task not in self.tasks:
            raise ConfigError(f"there is no task {task!r} among {', '.join(self.tasks)}{closest(task, self.tasks)}")
        return self.tasks.index(task)

    # --- passes -------------------------------------------------------------------------------------------------------

    def features(self, images: Tensor, task: str, trace: Trace | None = None) -> Features:
        """What the shared transformer gives for one task: its experts and no other are computed."""
        self.number(task)
        if images.dtype == torch.uint8:
            images = images.to(self.mean.dtype) / 255
        stages = getattr(self.head(task), "stages", ())
        features: Features = self.vit((images - self.mean) / self.std, task, self.k(task), trace, stages)
        return features

    def forward(self, images: Tensor, task: str, targets: Any = None, trace: Trace | None = None) -> Output:
        """[B, 3, S, S] → logits [B, N], or losses of a detector where it is given targets, or its detections."""
        features = self.features(images, task, trace)
        output: Output = self.head(task)(features, targets, trace)
        return output._replace(costs=features.costs)

    # --- whose a parameter is, and how many there are -------------------------------------------------------------------

    def owner(self, parameter: str) -> str | None:
        """The task a parameter belongs to by its name; None = it is shared."""
        parts = parameter.split(".")
        own = ("embed", "heads", "gate", "delta", "score")
        for before, name in itertools.pairwise(parts):
            if before in own and name in self.tasks:
                return name
        return None

    def rates(self, options: Any) -> dict[str, float]:
        """Shares of the highest rate: a task's own for its parts, and less in earlier layers (options.layer_decay)."""
        rates = {}
        for name, _ in self.named_parameters():
            owner = self.owner(name)
            own = 1.0 if owner is None else self.config.tasks[owner].rate
            rates[name] = own * options.layer_decay ** self.vit.layers_after(name.removeprefix("vit."))
        return rates

    def active_parameters(self, task: str) -> int:
        """Parameters that a prediction of this task uses for one token: k of E experts, its own parts, what is shared."""
        share = self.k(task) / self.config.experts.count
        unchanged = {f"{name}.delta.{task}" for name, m in self.named_modules() if is_unchanged(m, task)}
        total = 0.0
        for name, parameter in self.named_parameters():
            if self.owner(name) in (None, task) and name not in unchanged:
                total += parameter.numel() * (share if ".mlp.experts." in name else 1)
        return round(total)

    def preprocess(self, task: str) -> Preprocess:
        return Preprocess(self.config.tasks[task].image_size, MEAN, STD, "bicubic")


@contextmanager
def judging(model: nn.Module) -> Any:
    """Evaluation mode without gradients; the mode is as it was afterwards."""
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(before)

"""What a bundle says of images for one of its tasks, on a device."""

from __future__ import annotations

from functools import cached_property

import torch

from manylabel.backbone import Backbone
from manylabel.bundle import TaskBundle
from manylabel.inference.task_predictor import AnswerT, PreparedT, TaskPredictor


class BundlePredictor(TaskPredictor[PreparedT, AnswerT]):
    """A task's path through the model of a bundle."""

    def __init__(self, bundle: TaskBundle, device: torch.device | str = "cpu", batch_size: int = 32) -> None:
        super().__init__(batch_size)
        self.bundle, self.device = bundle, torch.device(device)
        self.model = bundle.model.eval().to(self.device)
        self.task = bundle.task

    @property
    def labels(self) -> tuple[str, ...]:
        return self.bundle.labels.names

    @cached_property
    def contiguous(self) -> Backbone:
        """The backbone once more, for maps of where it looked."""
        return self.model.backbone.contiguous()

"""A model that is ready to be used, with what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from manylabel.config import Config, TaskConfig
from manylabel.core.decision import Activation
from manylabel.error import BundleError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import LabelSpace
from manylabel.model import Model, TaskModel
from manylabel.preprocess import Preprocess
from manylabel.suggest import closest
from manylabel.task import AnyTask, task_of


@dataclass(frozen=True)
class TaskBundle:
    """One task of a bundle: its path through the model, and what a prediction must know beside it."""

    model: TaskModel
    run: Config
    labels: LabelSpace
    thresholds: np.ndarray  # [N] of labels; of detection one for all scores
    fitted_on: str = ""  # fingerprint of the images the thresholds were fitted on
    hierarchy: Hierarchy | None = None  # what is known about the labels beside their names
    text_source: str = ""  # where the text vectors of the labels come from, if the head has any
    activation: Activation | None = None  # what makes scores of logits; None = as the loss says
    training_images: np.ndarray | None = None  # [N] that have each label; bundles of earlier versions do not tell

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def config(self) -> TaskConfig:
        return self.run.tasks[self.name]

    @property
    def preprocess(self) -> Preprocess:
        """How an image becomes the network's input."""
        return self.model.preprocess

    @property
    def task(self) -> AnyTask:
        return task_of(self.config, self.activation)

    @property
    def vectors(self) -> np.ndarray | None:
        """The labels' text vectors [N, d], if the head works with them."""
        return getattr(self.model.head, "vectors", None)

    @property
    def unseen(self) -> np.ndarray | None:
        """[N] bool: labels that training never told; None where it told them all."""
        return getattr(self.model.head, "unseen", None)


@dataclass(frozen=True)
class Bundle:
    """The model of a run, and its tasks by name."""

    model: Model
    config: Config
    tasks: Mapping[str, TaskBundle]

    @property
    def only(self) -> TaskBundle:
        """The task of a model with one."""
        if len(self.tasks) > 1:
            raise BundleError(
                f"this model has several tasks; choose one: bundle.tasks[NAME] of {', '.join(self.tasks)}"
            )
        return next(iter(self.tasks.values()))

    def task(self, name: str | None) -> TaskBundle:
        """None = the only one."""
        if name is None:
            return self.only
        if name not in self.tasks:
            raise BundleError(f"there is no task {name!r:.60} among {', '.join(self.tasks)}{closest(name, self.tasks)}")
        return self.tasks[name]

    @property
    def labels(self) -> LabelSpace:
        """Of a model with one task."""
        return self.only.labels

    @property
    def thresholds(self) -> np.ndarray:
        """Of a model with one task."""
        return self.only.thresholds

    @property
    def preprocess(self) -> Preprocess:
        """Of a model with one task."""
        return self.only.preprocess

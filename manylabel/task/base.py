"""What every kind of task gives: from batches to targets, losses, evidence, figures and decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from manylabel.config import AugmentConfig, KindDefaults, TaskConfig
from manylabel.core.decision import Activation
from manylabel.core.evidence import EvidenceT
from manylabel.core.output import Output
from manylabel.data.dataset import Batch, ImageDataset
from manylabel.data.table import Table
from manylabel.detect import DetectionTarget
from manylabel.features import Features
from manylabel.head import HEADS
from manylabel.metric import METRICS
from manylabel.preprocess import Preprocess
from manylabel.registry import Registry


@dataclass(frozen=True, eq=False)
class Targets:
    """A batch as it is learned from: inputs on the device, and with them what is to be said of them."""

    inputs: Tensor | Features

    @property
    def objects(self) -> list[DetectionTarget] | None:
        """What a head must see that makes its losses itself; None for all others."""
        return None


TargetsT = TypeVar("TargetsT", bound=Targets)
JudgedT = TypeVar("JudgedT")


def total_of(losses: Mapping[str, Tensor]) -> Tensor:
    return torch.stack(list(losses.values())).sum()


@dataclass(frozen=True)
class Task(ABC, Generic[TargetsT, EvidenceT, JudgedT]):
    """No parameters, no files and no feeds: names, weights and tables are those of a run."""

    kind: ClassVar[str]
    measured_as: ClassVar[str]  # the kind whose metrics its results have (metric/registry.py)
    defaults: ClassVar[KindDefaults] = KindDefaults()  # its parts, where nobody says otherwise
    heads: ClassVar[Registry] = HEADS  # what its heads are chosen among
    cached: ClassVar[bool] = True  # it can be learned from features that were computed before
    one_label: ClassVar[bool] = False  # an image gets the one label with the highest score; thresholds play no part
    finds_objects: ClassVar[bool] = False  # the head is a detector, and what it finds has a place in the image
    loss_note: ClassVar[str] = ""  # what somebody should know who looks at its training loss
    activation: Activation | None = None  # what makes scores of logits

    @classmethod
    @abstractmethod
    def of(cls, config: TaskConfig, activation: Activation | None = None) -> Any:
        """`activation`: what a bundle remembers, which needs no loss any more; None = as the loss says."""

    @classmethod
    def check(cls, config: TaskConfig, where: str) -> None:
        """Stop at settings that make no sense for this kind; `where` stands before their names."""

    @property
    def masks(self) -> bool:
        """Whether objects are found with their masks."""
        return False

    # --- what its models are judged and chosen by -------------------------------------------------------------------

    @property
    def goal(self) -> str:
        """The name of a metric."""
        return METRICS.goal(self.kind).name

    @property
    def figures(self) -> list[str]:
        """Names of the metrics that stand for themselves, in no table with others."""
        return [metric.name for metric in METRICS.of(self.kind) if metric.table is None]

    # --- data -------------------------------------------------------------------------------------------------------

    def fit(self, table: Table, training: bool = True) -> Table:
        """The table as this task needs it. `training`: what cannot be learned from is an error."""
        return table

    def fitted_config(self, config: TaskConfig, table: Table, say: Callable[[str], None]) -> TaskConfig:
        """The settings as this data allows them."""
        return config

    def usable(self, table: Table) -> Table:
        """Without the images that would teach something wrong, for nobody said what this task needs to know of them."""
        return table

    def hint(self, table: Table) -> str | None:
        """What somebody should know who chose this task by accident."""
        return None

    def training_images(self, matrix: np.ndarray) -> np.ndarray | None:
        """How many images have each label, where a label without any is judged apart. [N]"""
        return None

    @abstractmethod
    def dataset(
        self, table: Table, preprocess: Preprocess, augment: AugmentConfig | None = None, seed: int = 0
    ) -> ImageDataset:
        """Its images for the model; as they are, unless `augment` varies them."""

    # --- learning ---------------------------------------------------------------------------------------------------

    def learning(self, config: TaskConfig, table: Table, rows: np.ndarray, say: Callable[[str], None]) -> Any:
        """The same task, able to give targets and losses: `rows` of the table are what is learned."""
        return self

    def without(self, unseen: np.ndarray) -> Any:
        """The same task, which learns nothing of these labels [N] bool, not even that they are absent."""
        return self

    def prepare(self, head: Any, config: TaskConfig, table: Table, rows: np.ndarray) -> None:
        """What a fresh head may know of the images that it will learn."""

    @property
    def mixes(self) -> bool:
        """Whether targets of training are of mixed images, so that they take random numbers."""
        return False

    @abstractmethod
    def targets(self, batch: Batch, device: torch.device, rng: np.random.Generator | None = None) -> TargetsT:
        """`rng`: of training, by which images are mixed; None = they stay as they are."""

    @abstractmethod
    def losses(self, output: Output, targets: TargetsT) -> dict[str, Tensor]:
        """The task's own losses by name; what the shared network costs beside them is not among them."""

    # --- judging and deciding ---------------------------------------------------------------------------------------

    @abstractmethod
    def evidence(self, output: Output, batch: Batch) -> EvidenceT:
        """What the model said of this batch."""

    @abstractmethod
    def judged(self, evidence: EvidenceT, table: Table, never: np.ndarray | None = None) -> JudgedT:
        """What metrics are computed of. `never` [N] bool: labels without a training image."""

    def apart(self, judged: JudgedT) -> Iterable[dict[str, Any]]:
        """Of each label that was never trained, which counts in no mean: name, average precision in percent, support."""
        return ()

    @classmethod
    @abstractmethod
    def threshold_count(cls, labels: int) -> int:
        """Of a model with so many labels."""

    @abstractmethod
    def thresholds(self, judged: JudgedT) -> np.ndarray:
        """Those with the best F1 on these images. [threshold_count]"""

    @abstractmethod
    def decide(self, found: Any, thresholds: np.ndarray) -> Any:
        """What is said to be there."""


AnyTask = Task[Any, Any, Any]

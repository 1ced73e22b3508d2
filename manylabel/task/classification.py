"""Labels of an image: any number of them, or exactly one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from manylabel.config import AugmentConfig, KindDefaults, TaskConfig
from manylabel.core.decision import Activation
from manylabel.core.evidence import Scores
from manylabel.core.output import Output
from manylabel.data.dataset import Batch, ImageDataset, image_dataset
from manylabel.data.mix import mix_batch
from manylabel.data.one_label import with_one_label_each
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.head.prior import Prior
from manylabel.labels import PRESENT, UNKNOWN, known, support
from manylabel.loss import LOSSES, Loss, SoftmaxLoss
from manylabel.metric import Judged, average_precision
from manylabel.metric.label_kind import LABEL_KINDS, LabelKind
from manylabel.preprocess import Preprocess
from manylabel.task.base import Targets, Task
from manylabel.task.kinds import register
from manylabel.task.mixing import mixing_allowed, unknown_is_negative


@dataclass(frozen=True, eq=False)
class LabelTargets(Targets):
    """What is there, in 0…1, and of what anybody said so."""

    labels: Tensor  # [B, N] float32
    known: Tensor  # [B, N] bool


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a classifier learns from: the labels of a table, its loss, and how images are mixed."""

    matrix: np.ndarray  # [n, N] of the whole table
    loss: Loss | SoftmaxLoss
    augment: AugmentConfig
    fills: bool  # a mixture of what nobody said is absent, as the loss takes it
    unseen: Tensor | None = None  # [N] bool: labels of which nobody says anything


@dataclass(frozen=True)
class Classification(Task[LabelTargets, Scores, Judged]):
    """What both kinds have in common; `activation` turns logits into scores, as the loss trained them."""

    activation: Activation = "sigmoid"
    lesson: Lesson | None = field(default=None, compare=False, repr=False)  # of a task that is learned

    @classmethod
    def of(cls, config: TaskConfig, activation: Activation | None = None) -> Any:
        activation = activation or LOSSES.get(config.loss.name).activation
        if activation == "softmax" and not cls.one_label:
            raise ConfigError(
                f"loss {config.loss.name} lets labels compete, so it suits one label per image only: kind: single_label"
            )
        return cls(activation)

    def training_images(self, matrix: np.ndarray) -> np.ndarray:
        return support(matrix)

    def dataset(
        self, table: Table, preprocess: Preprocess, augment: AugmentConfig | None = None, seed: int = 0
    ) -> ImageDataset:
        return image_dataset(table, preprocess, augment, seed)

    # --- learning ---------------------------------------------------------------------------------------------------

    def learning(self, config: TaskConfig, table: Table, rows: np.ndarray, say: Callable[[str], None]) -> Any:
        matrix = table.matrix[rows]
        counts = {
            "positive_counts": torch.from_numpy(support(matrix)),
            "known_counts": torch.from_numpy(known(matrix).sum(axis=0)),
        }
        loss = LOSSES.build(config.loss, **counts)
        augment = mixing_allowed(config.augment, config.loss, matrix, say)
        return replace(self, lesson=Lesson(table.matrix, loss, augment, unknown_is_negative(config.loss)))

    def without(self, unseen: np.ndarray) -> Any:
        assert self.lesson is not None
        hidden = torch.from_numpy(unseen)
        if isinstance(self.loss, Loss):  # where labels compete, what is unknown is no candidate anyway
            self.loss.unseen = hidden
        return replace(self, lesson=replace(self.lesson, unseen=hidden))

    def prepare(self, head: Any, config: TaskConfig, table: Table, rows: np.ndarray) -> None:
        """How often each label is there."""
        if getattr(head.options, "prior_bias", False):
            filled = config.loss.options.get("unknown", "ignore") != "ignore"
            head.expect(Prior.of(table.matrix[rows], compete=self.activation == "softmax", filled=filled))

    @property
    def loss(self) -> Loss | SoftmaxLoss:
        """Of a task that is learned."""
        assert self.lesson is not None
        return self.lesson.loss

    @property
    def mixes(self) -> bool:
        return self.lesson is not None and bool(self.lesson.augment.mixup or self.lesson.augment.cutmix)

    def targets(self, batch: Batch, device: torch.device, rng: np.random.Generator | None = None) -> LabelTargets:
        assert self.lesson is not None
        states = torch.from_numpy(self.lesson.matrix[batch.rows.numpy()])
        inputs, labels, told = batch.inputs, (states == PRESENT).float(), states != UNKNOWN
        if rng is not None and self.mixes:
            if self.lesson.fills:
                told = torch.ones_like(told) if self.lesson.unseen is None else (~self.lesson.unseen).expand_as(told)
            inputs, labels, told = mix_batch(inputs, labels, told, self.lesson.augment, rng)
        return LabelTargets(inputs.to(device), labels.to(device), told.to(device))

    def losses(self, output: Output, targets: LabelTargets) -> dict[str, Tensor]:
        """Of the labels; and beside them the head's extra costs, reduced as the loss reduces its own."""
        loss = self.loss.to(output.logits.device)
        losses: dict[str, Tensor] = {"labels": loss(output.logits, targets.labels, targets.known)}
        if output.extra is not None:
            losses["extra"] = loss.reduce(output.extra, targets.known)
        return losses

    # --- judging and deciding ---------------------------------------------------------------------------------------

    def probabilities(self, logits: Tensor) -> Tensor:
        """[B, N] float32"""
        return torch.softmax(logits.float(), dim=1) if self.activation == "softmax" else torch.sigmoid(logits.float())

    def evidence(self, output: Output, batch: Batch) -> Scores:
        return Scores(batch.rows.numpy(), self.probabilities(output.logits).cpu().numpy())

    def judged(self, evidence: Scores, table: Table, never: np.ndarray | None = None) -> Judged:
        return Judged(evidence.scores, table.matrix[evidence.rows], table.labels.names, never=never)

    def apart(self, judged: Judged) -> Iterator[dict[str, Any]]:
        if judged.never is None or not judged.never.any():
            return
        columns = np.flatnonzero(judged.never)
        scores, matrix = judged.scores[:, columns], judged.targets[:, columns]
        for i, ap, images in zip(columns.tolist(), average_precision(scores, matrix), support(matrix), strict=True):
            value = None if np.isnan(ap) else 100 * float(ap)
            yield {"name": judged.names[i], "ap": value, "support": int(images)}

    @classmethod
    def threshold_count(cls, labels: int) -> int:
        return labels

    @property
    def _labels(self) -> LabelKind:
        return LABEL_KINDS[self.measured_as]

    def thresholds(self, judged: Judged) -> np.ndarray:
        return self._labels.thresholds(judged)

    def decide(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Which labels are said to be there. [n, N] bool"""
        return self._labels.decide(scores, thresholds)


@register
@dataclass(frozen=True)
class MultiLabel(Classification):
    """Any number of labels in an image, each with a threshold of its own."""

    kind: ClassVar[str] = "multi_label"
    measured_as: ClassVar[str] = "multi_label"

    def hint(self, table: Table) -> str | None:
        one_each = ((table.matrix == PRESENT).sum(axis=1) == 1).all()
        if one_each and known(table.matrix).all() and (support(table.matrix) > 0).sum() > 1:
            return "every image has exactly one label: --kind single_label lets the labels compete"
        return None


@register
@dataclass(frozen=True)
class SingleLabel(Classification):
    """Exactly one label in an image: the one with the highest score."""

    kind: ClassVar[str] = "single_label"
    measured_as: ClassVar[str] = "single_label"
    defaults: ClassVar[KindDefaults] = KindDefaults(loss="cross_entropy")  # the labels compete
    one_label: ClassVar[bool] = True

    def fit(self, table: Table, training: bool = True) -> Table:
        return with_one_label_each(table, training)


MULTI_LABEL = MultiLabel()

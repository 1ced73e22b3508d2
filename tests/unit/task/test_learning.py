"""From batches to targets and losses: what a classifier is told, and what its loss is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manylabel.config import TaskConfig, make_config
from manylabel.core.output import Output
from manylabel.data.dataset import Batch
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.labels import LabelSpace
from manylabel.metric import Judged
from manylabel.task import Classification, MultiLabel, Scores, SingleLabel, task_of, together, total_of
from manylabel.task.classification import LabelTargets

CPU = torch.device("cpu")
MATRIX = np.array([[1, 0, -1], [0, 1, 1], [-1, -1, -1], [1, 0, 0]], np.int8)


def table(matrix: np.ndarray = MATRIX) -> Table:
    keys = np.array([f"{i}.jpg" for i in range(len(matrix))])
    return Table("animals", FileSource(Path()), keys, LabelSpace(("cat", "dog", "eel")), matrix)


def batch(*rows: int) -> Batch:
    return Batch(torch.full((len(rows), 3, 4, 4), 100, dtype=torch.uint8), torch.tensor(rows))


def learned(*settings: str, matrix: np.ndarray = MATRIX, said: list[str] | None = None) -> Classification:
    config = make_config(None, settings).only
    say = (lambda _: None) if said is None else said.append
    found: Classification = task_of(config).learning(config, table(matrix), np.arange(len(matrix)), say)
    return found


def test_a_label_that_nobody_told_is_not_absent() -> None:
    targets = learned().targets(batch(1, 0, 2), CPU)
    assert targets.labels.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert targets.known.tolist() == [[True, True, True], [True, True, False], [False, False, False]]
    assert targets.objects is None


def test_images_are_mixed_only_with_random_numbers() -> None:
    task = learned("augment.mixup=0.5", matrix=MATRIX[[1, 3]])
    assert task.mixes
    plain = task.targets(batch(0, 1), CPU)
    assert plain.labels.tolist() == [[0, 1, 1], [1, 0, 0]]
    mixed = [task.targets(batch(0, 1), CPU, np.random.default_rng(seed)).labels for seed in range(8)]
    assert any(((labels > 0) & (labels < 1)).any() for labels in mixed)
    assert torch.equal(mixed[0], task.targets(batch(0, 1), CPU, np.random.default_rng(0)).labels)


def test_what_is_half_unknown_is_not_mixed_unless_the_loss_takes_it_as_absent() -> None:
    said: list[str] = []
    assert not learned("augment.mixup=0.5", said=said).mixes
    assert said == ["33% of the training labels are unknown, so images are not mixed (augment.mixup, cutmix)"]
    task = learned("augment.mixup=0.5", "loss.unknown=negative", said=said)
    assert len(said) == 1
    assert task.targets(batch(0, 2), CPU, np.random.default_rng(0)).known.all()
    assert not task.targets(batch(0, 2), CPU).known.all()


def test_of_unseen_labels_nothing_is_learned_not_even_that_they_are_absent() -> None:
    settings = ("augment.mixup=0.5", "loss.unknown=negative")
    task, hidden = learned(*settings), np.array([False, False, True])
    blind = learned(*settings).without(hidden)
    targets = blind.targets(batch(0, 2), CPU, np.random.default_rng(0))
    assert targets.known.tolist() == [[True, True, False]] * 2
    logits = torch.tensor([[1.0, -1.0, 7.0], [0.5, 2.0, 7.0]])
    seen = task.losses(Output(logits[:, :2]), LabelTargets(targets.inputs, targets.labels[:, :2], targets.known[:, :2]))
    assert blind.losses(Output(logits), targets)["labels"].item() == pytest.approx(seen["labels"].item())


def test_extra_costs_of_a_head_are_reduced_as_the_labels_are() -> None:
    task = learned()
    targets = task.targets(batch(1, 3), CPU)  # six known entries
    losses = task.losses(Output(torch.zeros(2, 3), extra=torch.full((2, 2), 0.6)), targets)
    assert list(losses) == ["labels", "extra"]
    assert losses["labels"].item() == pytest.approx(np.log(2))
    assert losses["extra"].item() == pytest.approx(4 * 0.6 / 6)
    assert total_of(losses).item() == pytest.approx(np.log(2) + 0.4)
    assert list(task.losses(Output(torch.zeros(2, 3)), targets)) == ["labels"]


def test_weights_of_a_loss_are_those_of_the_rows_that_are_learned() -> None:
    config = TaskConfig(loss=make_config(None, ["loss.positive_weight=balanced"]).only.loss)
    task: Any = task_of(config).learning(config, table(), np.array([0, 1]), print)
    assert task.loss.positive_weights.tolist() == pytest.approx([1, 1, 1 / 20])
    assert task == task_of(config)  # what is learned makes no other task of it


def test_evidence_of_batches_comes_together_in_the_order_of_rows() -> None:
    task = MultiLabel()
    said = [task.evidence(Output(torch.tensor(logits)), batch(*rows)) for logits, rows in LOGITS]
    found = together(said)
    assert found.rows.tolist() == [0, 1, 3]
    assert found.scores.tolist() == [[0.5, 0.5, 0.5], [0.5, 1.0, 1.0], [1.0, 0.0, 0.0]]
    assert found.finite
    judged = task.judged(found, table())
    assert judged.targets.tolist() == MATRIX[[0, 1, 3]].tolist()
    assert not Scores(found.rows, np.full((3, 3), np.nan, np.float32)).finite
    assert Scores.joined([]).scores.shape == (0, 0)


LOGITS = [([[1000.0, -1000.0, -1000.0], [0.0, 0.0, 0.0]], (3, 0)), ([[0.0, 1000.0, 1000.0]], (1,))]


def test_thresholds_and_decisions_of_each_kind() -> None:
    scores = np.array([[0.9, 0.2], [0.7, 0.6], [0.1, 0.4]])
    judged = Judged(scores, np.array([[1, 0], [1, 1], [0, 0]], np.int8))
    thresholds = MultiLabel().thresholds(judged)
    assert thresholds.tolist() == pytest.approx([0.4, 0.5])
    assert MultiLabel().decide(scores, thresholds).tolist() == [[True, False], [True, True], [False, False]]
    assert SingleLabel().thresholds(judged).tolist() == [0, 0]
    assert SingleLabel().decide(scores, np.zeros(2)).tolist() == [[True, False], [True, False], [False, True]]


def test_thresholds_of_unseen_labels_come_from_the_seen_ones() -> None:
    scores = np.array([[0.9, 0.95], [0.7, 0.9], [0.1, 0.8]])
    matrix = np.array([[1, 0], [1, 0], [0, 1]], np.int8)
    found = MultiLabel().thresholds(Judged(scores, matrix, unseen=np.array([False, True])))
    assert found.tolist() == pytest.approx([0.4, 0.4])

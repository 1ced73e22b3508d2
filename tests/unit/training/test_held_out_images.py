"""The images by whose loss the number of experts is chosen: how many there are, and what their mean loss is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from manylabel import run
from manylabel.bundle import load_bundle
from manylabel.config import TaskConfig
from manylabel.core.output import Output
from manylabel.data.dataset import Batch
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import LabelSpace
from manylabel.stop import StopRequest
from manylabel.training import loop
from manylabel.training.label_loss import label_losses
from manylabel.training.work import Feeds, Parts, TaskAtWork

CPU = torch.device("cpu")


def table(train: int) -> Table:
    source: Any = None  # no image is read
    split = np.array(["train"] * train + ["val"] * 3)
    matrix = np.zeros((train + 3, 1), np.int8)
    return Table("some", source, np.arange(train + 3).astype(str), LabelSpace(("a",)), matrix, split)


@pytest.mark.parametrize(("share", "held_out"), [(0.0, 0), (0.1, 1), (0.3, 3), (0.9, 9)])
def test_a_share_of_the_training_images_is_held_out(share: float, held_out: int) -> None:
    parts = Parts.of(table(10), share, seed=0)
    assert len(parts.held_out) == held_out
    assert sorted([*parts.train, *parts.held_out]) == list(range(10))
    assert parts.val.tolist() == [10, 11, 12]
    assert np.array_equal(parts.held_out, Parts.of(table(10), share, seed=0).held_out)


@pytest.mark.parametrize("share", [0.04, 0.96])
def test_none_and_all_are_too_few_and_too_many(share: float) -> None:
    with pytest.raises(DataError, match=r"some: 10 training images are too few to hold out"):
        Parts.of(table(10), share, seed=0)


class Task:
    """Every image has the loss that its row has, in two parts."""

    def targets(self, batch: Batch, device: Any) -> Any:
        return SimpleNamespace(inputs=batch.inputs, objects=None, rows=batch.rows)

    def losses(self, output: Any, targets: Any) -> dict[str, torch.Tensor]:
        mean = targets.rows.double().mean()
        return {"one": 0.25 * mean, "other": 0.75 * mean}


def work(*batches: list[int]) -> TaskAtWork:
    class Feed:
        def batches(self) -> Iterator[Batch]:
            return (Batch(torch.zeros(len(rows), 3, 8, 8), torch.tensor(rows, dtype=torch.int64)) for rows in batches)

    some: Any = Feed()
    task: Any = Task()
    parts = Parts.of(table(10), 0.5, seed=0)
    return TaskAtWork("labels", task, TaskConfig(), table(10), parts, Feeds(some, some, some), some, StopRequest())


def model(*given: Any) -> Any:
    """Costs of routers are not the task's."""
    return Output(costs={"of the routers": torch.tensor(1e9)})


some: Any = model


def test_every_held_out_image_counts_once_in_the_mean() -> None:
    assert work([1, 2, 3, 4], [5, 6, 7, 8], [60]).held_out_loss(some, CPU) == pytest.approx((36 + 60) / 9)
    assert work([1, 2], [], [9]).held_out_loss(some, CPU) == pytest.approx(4)
    with pytest.raises(DataError, match="none of the 5 held-out images can be read"):
        work([], []).held_out_loss(some, CPU)


def test_the_images_of_all_processes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process, which has one image with a loss of 90, is played: a real one takes seconds to begin."""
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda sums: sums.add_(torch.tensor([90.0, 1.0])))
    assert work([1, 2, 3], [4]).held_out_loss(some, CPU, 2) == pytest.approx(100 / 5)


def test_a_head_that_adapts_hears_of_training_images_that_are_not_learned(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of those that choose the epoch."""
    seen: list[np.ndarray] = []

    def spied(loss: Any, scores: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        seen.append(matrix)
        return label_losses(loss, scores, matrix)

    monkeypatch.setattr(loop, "label_losses", spied)
    head = ["head.name=hsq", "head.dim=16", "head.heads=2", "head.hidden=16", "head.adaptive=true"]
    settings = [*tiny_settings, *head, "train.epochs=3", "data.workers=0"]
    results = run.train(str(photos), out=tmp_path / "run", settings=settings).results
    assert [len(matrix) for matrix in seen] == [4, 4]  # a tenth of 38, after all epochs but the last
    learned = [json.loads(line)["images"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert learned == [34, 34, 34]
    assert any("held-out training images" in note for note in results["notes"])


def test_a_run_too_short_to_hear_of_held_out_losses_can_be_used(
    photos: Path, tmp_path: Path, tiny_settings: list[str]
) -> None:
    """Its lowest losses so far are infinite; nothing is wrong with its weights."""
    settings = [*tiny_settings, "head.name=hsq", "head.dim=16", "head.heads=2", "head.hidden=16", "head.adaptive=true"]
    run.train(photos, out=tmp_path / "run", settings=[*settings, "train.epochs=1"])
    model: Any = load_bundle(tmp_path / "run").model
    assert torch.isinf(model.heads["labels"].capacity.best).all()

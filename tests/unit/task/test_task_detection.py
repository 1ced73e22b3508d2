"""Objects as a task: what a detector learns from, what it found, and what is worth reporting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manylabel.config import AugmentConfig, DataConfig, Part, TaskConfig
from manylabel.core.output import Output
from manylabel.data.object_dataset import ObjectBatch
from manylabel.data.read import read_table
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.detect import Detections
from manylabel.error import DataError
from manylabel.metric import JudgedObjects, measured
from manylabel.preprocess import Preprocess
from manylabel.task import Detection, task_of, together
from manylabel.task.detection import Objects

CPU = torch.device("cpu")
BOXES = Detection(with_masks=False)


def scenes() -> tuple[Table, ObjectBatch]:
    """Three scenes, and a batch of them in another order."""
    table = read_table(DataConfig(path="scenes")).subset(np.arange(3))
    dataset = BOXES.dataset(table, Preprocess(table.source.size, (0.5,) * 3, (0.5,) * 3))  # type: ignore[attr-defined]
    return table, dataset.collate([dataset[0, row] for row in (2, 0, 1)])


def perfect(batch: ObjectBatch) -> Output:
    found = [Detections(each.boxes, each.labels, torch.linspace(0.9, 0.8, len(each))) for each in batch.objects]
    return Output(found)


def test_targets_are_the_objects_and_losses_the_detectors_own() -> None:
    _, batch = scenes()
    targets = BOXES.targets(batch, CPU)
    assert targets.objects is targets.there
    assert [len(each) for each in targets.there] == [len(each) for each in batch.objects]
    losses = {"cls_1": torch.tensor(0.5), "box_1": torch.tensor(0.25)}
    assert BOXES.losses(Output(losses=losses, costs={"load": torch.tensor(9.0)}), targets) == losses


def test_what_is_found_exactly_is_judged_right_in_stored_pixels() -> None:
    table, batch = scenes()
    evidence = BOXES.evidence(perfect(batch), batch)
    assert evidence.rows.tolist() == [2, 0, 1]
    evidence = together([evidence])
    assert evidence.rows.tolist() == [0, 1, 2]
    judged = BOXES.judged(evidence, table)
    assert judged.masks is None
    for found, truth in zip(judged.found, judged.truth, strict=True):
        assert np.abs(found.boxes - truth.boxes).max() < 0.01
    assert measured(judged, ["AP50"])["AP50"] == pytest.approx(100)
    assert BOXES.goal == "AP"
    assert BOXES.figures[0] == "AP"


def test_what_is_worth_reporting() -> None:
    table, batch = scenes()
    evidence = together([BOXES.evidence(perfect(batch), batch)])
    assert BOXES.thresholds(BOXES.judged(evidence, table)) == pytest.approx([0.8], abs=0.01)
    nothing = Objects(evidence.rows, [BOXES.evidence(_none(batch), batch).found[0]] * 3)
    judged: JudgedObjects = BOXES.judged(nothing, table)
    assert BOXES.thresholds(judged).tolist() == [0.5]
    found = Detections(torch.zeros(2, 4), torch.tensor([0, 1]), torch.tensor([0.7, 0.2]))
    assert BOXES.decide(found, [0.5]).labels.tolist() == [0]


def _none(batch: ObjectBatch) -> Output:
    nothing = Detections(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    return Output([nothing] * len(batch))


def test_masks_are_as_the_detector_is_asked_for() -> None:
    masks = [task_of(TaskConfig("detection", head=Part("cascade", {"masks": on}))).masks for on in (True, False)]
    assert masks == [True, False]


def test_images_are_varied_only_in_training() -> None:
    table, _ = scenes()
    preprocess = Preprocess(48, (0.5,) * 3, (0.5,) * 3)
    assert not BOXES.dataset(table, preprocess).random
    varied: Any = BOXES.dataset(table, preprocess, AugmentConfig(flip=True, random_crop=0.8), seed=3)
    assert (varied.random, varied.seed, varied.placing.flip) == (True, 3, True)
    assert varied.placing.scale == pytest.approx((0.8, 1.2))


def test_data_without_boxes_is_an_error_before_anything_is_trained() -> None:
    table, _ = scenes()
    plain = replace(table, source=FileSource(Path()))
    with pytest.raises(DataError, match="has no boxes"):
        BOXES.dataset(plain, Preprocess(48, (0.5,) * 3, (0.5,) * 3))

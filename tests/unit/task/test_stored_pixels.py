"""Objects in the pixels of the stored image: what is judged, and what is left out of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from manylabel.config import DataConfig
from manylabel.data.object_transform import ObjectTransform
from manylabel.data.objects import Objects
from manylabel.data.read import read_table
from manylabel.data.stored_objects import StoredObjects
from manylabel.detect import Detections, DetectionTarget
from manylabel.labels import ABSENT, PRESENT
from manylabel.metric.detection import ImageFound, coco_average_precision, run_lengths
from manylabel.preprocess import Preprocess
from manylabel.task import stored_pixels
from manylabel.task.boxed import with_boxed_images_only
from manylabel.task.stored_pixels import box_truth, in_stored_pixels, mask_truth


def _stored(masks: np.ndarray | None) -> StoredObjects:
    boxes = torch.tensor([[10.0, 10, 50, 50], [60, 60, 90, 90]])
    none = torch.zeros(2, dtype=torch.bool)
    drawn = None if masks is None else torch.from_numpy(masks)
    return StoredObjects((120, 100), DetectionTarget(boxes, torch.tensor([0, 0]), drawn, none), none)


def _filled() -> np.ndarray:
    masks = np.zeros((2, 100, 120), bool)
    masks[0, 10:50, 10:50] = masks[1, 60:90, 60:90] = True
    return masks


def test_an_object_whose_mask_nobody_drew_is_neither_found_nor_missed() -> None:
    masks = _filled()
    found = ImageFound(
        _stored(None).target.boxes.numpy(), np.zeros(2, int), np.array([0.8, 0.9]), run_lengths(masks.copy())
    )
    masks[1] = False
    result = coco_average_precision([mask_truth(_stored(masks))], [found], 1, "mask")
    assert result.ap == pytest.approx(1)
    assert result.objects == 1


def test_an_image_without_objects_has_no_masks() -> None:
    none = torch.zeros(0, dtype=torch.bool)
    empty = StoredObjects(
        (30, 20), DetectionTarget(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), None, none), none
    )
    assert mask_truth(empty).masks == []
    assert len(box_truth(empty).boxes) == 0


def test_masks_are_laid_into_a_large_image_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = torch.tensor([[2.0, 2, 20, 20], [5, 5, 40, 30], [0, 0, 9, 9]])
    found = Detections(boxes, torch.arange(3), torch.tensor([0.9, 0.5, 0.1]), torch.rand(3, 28, 28))
    place = ObjectTransform(Preprocess(64, (0.5,) * 3, (0.5,) * 3)).place(90, 70)
    whole = in_stored_pixels(found, place, masks=True)
    monkeypatch.setattr(stored_pixels, "MASK_PIXELS", 90 * 70)
    assert in_stored_pixels(found, place, masks=True).masks == whole.masks
    assert found.part(found.scores >= 0.5).labels.tolist() == [0, 1]


def test_objects_are_small_by_their_pixels_where_these_are_known() -> None:
    masks = _filled()
    masks[0, 12:, :] = False  # two rows of forty pixels are left in the first box
    assert box_truth(_stored(masks)).areas.tolist() == [80, 900]  # type: ignore[union-attr]
    assert box_truth(_stored(None)).areas.tolist() == [1600, 900]  # type: ignore[union-attr]


def test_images_whose_labels_have_no_boxes_are_no_background() -> None:
    table = read_table(DataConfig(path="scenes")).subset(np.arange(4))
    matrix = np.full_like(table.matrix, ABSENT)
    matrix[0, 1] = matrix[1, 2] = matrix[2, 2] = PRESENT  # the last one has no labels at all
    row, label = np.array([0, 2]), np.array([1, 2])
    box = np.tile(np.array([1, 1, 9, 9], np.float32), (2, 1))
    none = np.zeros(2, bool)
    objects = Objects(row=row, label=label, box=box, crowd=none, difficult=none, masks=[None, None])
    told = with_boxed_images_only(replace(table, matrix=matrix, objects=objects))
    assert told.keys.tolist() == table.keys[[0, 2, 3]].tolist()

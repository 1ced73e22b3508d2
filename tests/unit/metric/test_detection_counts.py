"""What counts when detections are judged: an overlap of 0.5, a hundred of an image and label, equal scores together."""

from __future__ import annotations

import numpy as np
import pytest

from manylabel.metric.detection import ImageFound, ImageTruth, coco_average_precision

SIZE = (400, 400)
BOX = np.array([10.0, 10.0, 50.0, 50.0])  # 40 × 40
FAR = BOX + 100


def moved(box: np.ndarray, *by: float) -> np.ndarray:
    return box + np.array(by)


def truth(*boxes: np.ndarray, crowd: tuple[bool, ...] | None = None) -> list[ImageTruth]:
    flags = None if crowd is None else np.array(crowd)
    return [ImageTruth(SIZE, np.array(boxes), np.zeros(len(boxes), int), crowd=flags)]


def found(*boxes: np.ndarray, scores: list[float]) -> list[ImageFound]:
    return [ImageFound(np.array(boxes), np.zeros(len(boxes), int), np.array(scores))]


@pytest.mark.parametrize(("higher", "right"), [(38.0, True), (41.0, False)])  # overlaps of 0.513 and 0.494
def test_an_object_is_worth_reporting_from_an_overlap_of_one_half_on(higher: float, right: bool) -> None:
    result = coco_average_precision(truth(BOX), found(moved(BOX, 0, 0, 0, higher), scores=[0.7]), 1)
    assert result.best_score == (0.7 if right else None)


def test_what_is_half_in_a_crowd_does_not_make_a_score_better_or_worse() -> None:
    """Four detections lie in a crowd by 0.525 of their area: forgiven at an overlap of 0.5, the only one that counts."""
    parts = [moved(FAR, 40.0 * i, 19, 40.0 * i, 19) for i in range(4)]
    crowd = np.array([FAR[0], FAR[1], FAR[0] + 160, FAR[1] + 40])
    other = moved(BOX, 0, 200, 0, 200)
    there = truth(BOX, other, crowd, crowd=(False, False, True))
    both = found(BOX, other, *parts, scores=[0.9, 0.3, 0.5, 0.5, 0.5, 0.5])
    assert coco_average_precision(there, both, 1).best_score == pytest.approx(0.3)
    one = found(BOX, *parts, scores=[0.9, 0.5, 0.5, 0.5, 0.5])
    assert coco_average_precision(there, one, 1).best_score == pytest.approx(0.9)


def test_detections_of_one_score_are_reported_together() -> None:
    """Of five with score 0.5 one is right: all of them bring 4 / (6 + 2), the first alone 2 / (1 + 2)."""
    wrong = [moved(FAR, 0, 50.0 * i, 0, 50.0 * i) for i in range(4)]
    there = truth(BOX, moved(BOX, 200, 0, 200, 0))
    guess = found(BOX, moved(BOX, 200, 0, 200, 0), *wrong, scores=[0.9, 0.5, 0.5, 0.5, 0.5, 0.5])
    assert coco_average_precision(there, guess, 1).best_score == pytest.approx(0.9)


def test_a_hundred_of_an_image_and_label_count() -> None:
    for wrong, expected in ((99, 1 / 100), (100, 0.0)):
        guess = found(*[FAR] * wrong, BOX, scores=[0.9] * wrong + [0.1])
        assert coco_average_precision(truth(BOX), guess, 1).ap == pytest.approx(expected)

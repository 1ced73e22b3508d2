from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from manylabel.metric.detection import DetectionAP, ImageFound, ImageTruth, coco_average_precision, run_lengths

SIZE = (120, 160)
BOX = np.array([[10.0, 10.0, 50.0, 50.0]])


def filled(boxes: np.ndarray) -> np.ndarray:
    masks = np.zeros((len(boxes), *SIZE), bool)
    for mask, (left, top, right, bottom) in zip(masks, boxes.astype(int), strict=True):
        mask[top:bottom, left:right] = True
    return masks


def found(boxes: np.ndarray, labels: list[int], scores: list[float]) -> ImageFound:
    return ImageFound(boxes, np.array(labels, int), np.array(scores, float), filled(boxes))


def nothing() -> ImageFound:
    return found(np.empty((0, 4)), [], [])


def truth(boxes: np.ndarray, labels: list[int], **flags: Any) -> ImageTruth:
    flags = {name: np.array(values) for name, values in flags.items()}
    return ImageTruth(SIZE, boxes, np.array(labels, int), filled(boxes), **flags)


def test_the_score_from_which_on_objects_are_worth_reporting() -> None:
    far = BOX + 60
    there = [truth(np.concatenate([BOX, far]), [1, 2])]
    boxes = np.concatenate([BOX, far, BOX + 30, BOX + 35])
    guess = [found(boxes, [1, 2, 1, 1], [0.9, 0.4, 0.3, 0.2])]
    assert coco_average_precision(there, guess, 3).best_score == pytest.approx(0.4)
    early = [found(boxes, [1, 2, 1, 1], [0.9, 0.1, 0.3, 0.2])]  # 2·1/(1 + 2) before, 2·2/(4 + 2) with everything
    assert coco_average_precision(there, early, 3).best_score == pytest.approx(0.9)
    assert coco_average_precision(there, [found(BOX + 45, [1], [0.9])], 3).best_score is None
    assert coco_average_precision(there, [nothing()], 3).best_score is None


@pytest.mark.parametrize("kind", ["box", "mask"])
def test_finding_everything_is_one_and_nothing_is_zero(kind: Any) -> None:
    perfect = coco_average_precision([truth(BOX, [1])], [found(BOX, [1], [0.9])], 3, kind)
    assert (perfect.ap, perfect.ap50, perfect.ap75, perfect.medium) == pytest.approx((1, 1, 1, 1))
    assert perfect.small is perfect.large is None  # there is no such object: no figure, not −1
    np.testing.assert_allclose(perfect.per_label, [np.nan, 1, np.nan])
    assert (perfect.images, perfect.objects, perfect.found) == (1, 1, 1)
    assert coco_average_precision([truth(BOX, [1])], [nothing()], 3, kind).ap == 0


def test_no_objects_at_all_is_no_figure() -> None:
    result = coco_average_precision([truth(np.empty((0, 4)), [])], [found(BOX, [0], [0.5])], 2)
    assert result.ap is result.ap50 is result.ap75 is None
    assert np.isnan(result.per_label).all()
    assert coco_average_precision([], [], 2).ap is None


def test_a_loose_box_counts_at_low_thresholds_alone() -> None:
    loose = BOX + np.array([0, 0, 0, 10.0])  # IoU 40·40 / 40·50 = 0.8: seven of the ten thresholds
    result = coco_average_precision([truth(BOX, [0])], [found(loose, [0], [0.9])], 1)
    assert (result.ap50, result.ap75) == pytest.approx((1, 1))
    assert result.ap == pytest.approx(0.7)
    looser = BOX + np.array([0, 0, 0, 20.0])  # 2/3
    result = coco_average_precision([truth(BOX, [0])], [found(looser, [0], [0.9])], 1)
    assert (result.ap50, result.ap75, result.ap) == pytest.approx((1, 0, 0.4))


def test_a_second_box_on_one_object_is_a_mistake_and_a_crowd_forgives_it() -> None:
    doubled = found(np.concatenate([BOX + 60, BOX, BOX]), [0, 0, 0], [0.95, 0.9, 0.8])
    wrong_first = coco_average_precision([truth(BOX, [0])], [doubled], 1)
    assert wrong_first.ap50 == pytest.approx(0.5)
    both = np.concatenate([BOX, BOX + 60])
    crowd = coco_average_precision([truth(both, [0, 0], crowd=[False, True])], [doubled], 1)
    assert crowd.ap50 == pytest.approx(1)
    assert crowd.objects == 1
    hard = coco_average_precision([truth(both, [0, 0], ignore=[False, True])], [doubled], 1)
    assert hard.ap50 == pytest.approx(1)
    parts = found(np.concatenate([BOX[:, [0, 1, 2, 3]] + 60 - [0, 0, 0, 30], BOX]), [0, 0], [0.95, 0.9])
    flags = ("crowd", 1.0), ("ignore", 0.5)  # a part of a crowd is forgiven, a bad box of a hard object is not
    for name, expected in flags:
        judged = coco_average_precision([truth(both, [0, 0], **{name: [False, True]})], [parts], 1)
        assert judged.ap50 == pytest.approx(expected)


def test_sizes_are_those_that_are_told_or_the_masks() -> None:
    large = np.array([[0.0, 0.0, 110.0, 110.0]])
    result = coco_average_precision([truth(large, [0], areas=[500.0])], [found(large, [0], [0.9])], 1)
    assert result.small == pytest.approx(1)
    assert result.large is None
    masks = filled(large)
    masks[:, :, 20:] = False  # 110 × 20 pixels: medium, though its box is large
    thin = ImageTruth(SIZE, large, np.array([0]), masks)
    assert coco_average_precision([thin], [found(large, [0], [0.9])], 1).medium == pytest.approx(1)


def test_run_lengths_are_as_good_as_pixels() -> None:
    there, guess = truth(BOX, [0]), found(BOX + 3, [0], [0.4])
    packed = ImageFound(guess.boxes, guess.labels, guess.scores, run_lengths(np.asarray(guess.masks)))
    pixels, short = (coco_average_precision([there], [each], 1, "mask") for each in (guess, packed))
    assert pixels.ap == short.ap
    assert pixels.ap is not None
    assert 0 < pixels.ap < 1
    assert run_lengths(np.zeros((0, *SIZE), bool)) == []


def many(rng: np.random.Generator, images: int, count: int, labels: int) -> tuple[list[ImageTruth], list[ImageFound]]:
    truths, guesses = [], []
    for _ in range(images):
        corner = rng.uniform(0, 80, (4, 2))
        boxes = np.concatenate([corner, corner + rng.uniform(5, 40, (4, 2))], axis=1)
        near = np.repeat(boxes, count // 8, axis=0)
        near = near + rng.normal(0, 3, near.shape)
        corner = rng.uniform(0, 80, (count - len(near), 2))
        rest = np.concatenate([corner, corner + rng.uniform(5, 40, corner.shape)], axis=1)
        guess = np.concatenate([near, rest])
        guess[:, 2:] = np.maximum(guess[:, 2:], guess[:, :2] + 1)
        names = rng.integers(labels, size=4)
        guessed = np.concatenate([np.repeat(names, count // 8), rng.integers(labels, size=len(rest))])
        truths.append(ImageTruth(SIZE, boxes, names, crowd=rng.random(4) < 0.2))
        guesses.append(ImageFound(guess, guessed, rng.random(count)))
    return truths, guesses


def test_the_figures_are_those_of_pycocotools_on_files() -> None:
    truths, guesses = many(np.random.default_rng(1), images=12, count=24, labels=3)
    annotations, results = [], []
    for image, (there, guess) in enumerate(zip(truths, guesses, strict=True), 1):
        for box, label, crowd in zip(there.boxes, there.labels, np.asarray(there.crowd), strict=True):
            sides = (box[2:] - box[:2]).tolist()
            row = {"id": len(annotations) + 1, "image_id": image, "category_id": int(label) + 1, "iscrowd": int(crowd)}
            annotations.append(row | {"bbox": [*box[:2].tolist(), *sides], "area": sides[0] * sides[1]})
        for box, label, score in zip(guess.boxes, guess.labels, guess.scores, strict=True):
            sides = (box[2:] - box[:2]).tolist()
            row = {"image_id": image, "category_id": int(label) + 1, "score": float(score)}
            results.append(row | {"bbox": [*box[:2].tolist(), *sides]})
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": i + 1, "height": SIZE[0], "width": SIZE[1]} for i in range(12)],
            "categories": [{"id": i + 1, "name": str(i)} for i in range(3)],
            "annotations": annotations,
        }
        coco.createIndex()
        theirs = COCOeval(coco, coco.loadRes(results), "bbox")
        theirs.evaluate()
        theirs.accumulate()
        theirs.summarize()
    ours = coco_average_precision(truths, guesses, 3)
    figures = [ours.ap, ours.ap50, ours.ap75, ours.small, ours.medium, ours.large]
    assert [-1 if figure is None else figure for figure in figures] == pytest.approx(theirs.stats[:6], abs=1e-12)


def test_it_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    coco_average_precision([truth(BOX, [0])], [found(BOX, [0], [0.9])], 1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("there", "guess", "kind", "said"),
    [
        ([truth(BOX, [0])], [], "box", "1 images, but detections in 0"),
        ([truth(BOX, [3])], [nothing()], "box", "image 0: truth with a label outside of 0 … 1"),
        ([truth(BOX, [0])], [found(BOX, [0], [float("nan")])], "box", "image 0: a detection's score is NaN"),
        ([truth(BOX, [0])], [ImageFound(BOX * np.nan, np.array([0]), np.array([0.5]))], "box", "a box of NaN"),
        ([truth(BOX, [0])], [ImageFound(BOX, np.array([0]), np.array([0.5]))], "mask", "detections need a mask"),
        ([ImageTruth((9, 9), BOX, np.array([0]), filled(BOX))], [nothing()], "mask", "truth need a mask of"),
        ([truth(BOX, [0])], [nothing()], "boxes", "kind is 'box' or 'mask'"),
    ],
)
def test_what_does_not_fit_is_named(there: Any, guess: Any, kind: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        coco_average_precision(there, guess, 2, kind)


def test_results_are_plain_values() -> None:
    result = coco_average_precision([truth(BOX, [0])], [found(BOX, [0], [0.9])], 1)
    assert isinstance(result, DetectionAP)
    assert type(result.ap) is float

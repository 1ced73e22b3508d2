"""Detection against loops: average precision by the COCO protocol, and what a stage of the cascade learns from."""

from __future__ import annotations

from typing import Any

import literal_detection as literal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision.ops import roi_align

from manylabel.detect.box_code import decode, encode
from manylabel.detect.cascade import CODES, OVERLAPS, SMOOTH, Regions, stage_losses
from manylabel.detect.matching import IGNORED
from manylabel.detect.paste import paste
from manylabel.detect.region import align_by_places
from manylabel.detect.target import DetectionTarget
from manylabel.metric.detection import ImageFound, ImageTruth, coco_average_precision

SIDE = 140  # pixels: large enough for objects of all three sizes
LABELS = 3


def boxes_near(rng: np.random.Generator, boxes: np.ndarray, count: int) -> np.ndarray:
    """Boxes that are moved a little from given ones, or lie anywhere."""
    corner = rng.uniform(0, SIDE - 8, (count, 2))
    anywhere = np.concatenate([corner, corner + rng.uniform(3, 1 + SIDE - corner)], axis=1)
    if not len(boxes):
        return anywhere
    moved = boxes[rng.integers(len(boxes), size=count)] + rng.normal(0, rng.choice([0.5, 4]), (count, 4))
    chosen = np.where(rng.random((count, 1)) < 0.7, moved, anywhere)
    return np.concatenate([chosen[:, :2], np.maximum(chosen[:, 2:], chosen[:, :2] + 1)], axis=1)


def drawn(rng: np.random.Generator, box: np.ndarray) -> np.ndarray:
    """A mask in a small image: the box, without some of its pixels."""
    mask = np.zeros((SIDE // 5, SIDE // 5), bool)
    left, top, right, bottom = np.clip(box / 5, 0, SIDE // 5).astype(int)
    mask[top : bottom + 1, left : right + 1] = True
    return mask & (rng.random(mask.shape) < 0.9)


def random_case(seed: int, kind: str) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(rng.integers(1, 4)):
        there = boxes_near(rng, np.empty((0, 4)), rng.integers(0, 5))
        truth = [
            {"box": box, "label": int(rng.integers(LABELS)), "crowd": rng.random() < 0.2, "ignore": rng.random() < 0.2}
            for box in there
        ]
        found = [
            {"box": box, "label": int(rng.integers(LABELS)), "score": float(rng.random())}
            for box in boxes_near(rng, there, rng.integers(0, 8))
        ]
        for thing in [*truth, *found]:
            thing["mask"] = drawn(rng, thing["box"]) if kind == "mask" else None
        for thing in truth:
            thing["area"] = float(rng.choice([900, 4000, 20000])) if kind == "mask" else literal.area(thing["box"])
        images.append((truth, found))
    return images


def column(things: list[dict[str, Any]], name: str, shape: tuple[int, ...] = (-1,)) -> np.ndarray:
    return np.array([thing[name] for thing in things]).reshape(shape)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["box", "mask"]))
def test_average_precision_is_that_of_the_loops(seed: int, kind: Any) -> None:
    images = random_case(seed, kind)
    truth, found, side = [], [], SIDE // 5
    for there, guess in images:
        masks = [column(things, "mask", (-1, side, side)) if kind == "mask" else None for things in (there, guess)]
        truth.append(
            ImageTruth(
                (side, side) if kind == "mask" else (SIDE, SIDE),
                column(there, "box", (-1, 4)),
                column(there, "label").astype(int),
                masks[0],
                column(there, "crowd"),
                column(there, "ignore"),
                column(there, "area"),
            )
        )
        labels = column(guess, "label").astype(int)
        found.append(ImageFound(column(guess, "box", (-1, 4)), labels, column(guess, "score"), masks[1]))
    result = coco_average_precision(truth, found, LABELS, kind)

    def expected(thresholds: Any, size: str = "all") -> list[float]:
        each = [literal.average_precision(images, label, thresholds, size, kind) for label in range(LABELS)]
        return [np.nan if value is None else value for value in each]

    def mean(values: list[float]) -> float | None:
        return None if np.isnan(values).all() else pytest.approx(np.nanmean(values), abs=1e-9)

    np.testing.assert_allclose(result.per_label, expected(literal.THRESHOLDS), atol=1e-9)
    assert result.ap == mean(expected(literal.THRESHOLDS))
    assert result.ap50 == mean(expected([0.5]))
    assert result.ap75 == mean(expected([literal.THRESHOLDS[5]]))
    for size in ("small", "medium", "large"):
        assert getattr(result, size) == mean(expected(literal.THRESHOLDS, size))
    assert result.objects == sum(not thing["crowd"] and not thing["ignore"] for there, _ in images for thing in there)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), stage=st.integers(0, 2), objects=st.integers(0, 4), count=st.integers(1, 12))
def test_a_stage_learns_what_the_loops_say(seed: int, stage: int, objects: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    targets, boxes, total_label, total_box, used = [], [], 0.0, 0.0, 0
    scores = torch.from_numpy(rng.normal(size=(2 * count, LABELS + 1)))
    code = torch.from_numpy(rng.normal(size=(2 * count, 4)))
    labels_of, objects_of = [], []
    for image in range(2):
        there = boxes_near(rng, np.empty((0, 4)), objects)
        near = boxes_near(rng, there, count)
        labels, ignore = rng.integers(LABELS, size=objects), rng.random(objects) < 0.3
        parts = [torch.from_numpy(x) for x in (there, labels, ignore)]
        targets.append(DetectionTarget(parts[0], parts[1], None, parts[2]))
        boxes.append(torch.from_numpy(near))
        for number, box in enumerate(near):
            label, matched = literal.match(box, there, labels, ignore, OVERLAPS[stage])
            labels_of.append({"background": LABELS, "ignored": IGNORED}.get(label, label))
            objects_of.append(matched)
            if label == "ignored":
                continue
            used += 1
            row = image * count + number
            logits = scores[row].tolist()
            total_label += np.log(np.sum(np.exp(logits))) - logits[LABELS if label == "background" else int(label)]
            if matched is not None:
                wanted = literal.encode(there[matched], box, CODES[stage])
                total_box += sum(
                    literal.smooth_l1(a - b, SMOOTH) for a, b in zip(code[row].tolist(), wanted, strict=True)
                )
    regions = Regions.matched(boxes, targets, OVERLAPS[stage], LABELS)
    assert torch.cat(regions.labels).tolist() == labels_of
    for found, expected in zip(torch.cat(regions.objects).tolist(), objects_of, strict=True):
        assert expected is None or found == expected
    of_labels, of_boxes = stage_losses(scores, code, regions, targets, CODES[stage])
    assert float(of_labels) == pytest.approx(total_label / max(1, used), abs=1e-6)
    assert float(of_boxes) == pytest.approx(total_box / max(1, used), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), stage=st.integers(0, 2))
def test_box_codes_are_the_formula_and_lead_back(seed: int, stage: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = boxes_near(rng, np.empty((0, 4)), 6)
    truth = boxes_near(rng, boxes, 6)
    code = encode(torch.from_numpy(truth), torch.from_numpy(boxes), CODES[stage])
    expected = [literal.encode(t, b, CODES[stage]) for t, b in zip(truth, boxes, strict=True)]
    np.testing.assert_allclose(code.numpy(), expected, atol=1e-9)
    back = decode(code.float(), torch.from_numpy(boxes).float(), CODES[stage])
    np.testing.assert_allclose(back.numpy(), truth, atol=0.01)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), side=st.sampled_from([1, 7, 14]), stride=st.sampled_from([3.5, 4.0, 16.0]),
    counts=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)  # fmt: skip
def test_regions_by_places_are_torchvisions(seed: int, side: int, stride: float, counts: tuple[int, int]) -> None:
    torch.manual_seed(seed)
    map = torch.randn(2, 3, 6, 9)
    ours, theirs = map.clone().requires_grad_(), map.clone().requires_grad_()
    image = torch.repeat_interleave(torch.tensor(counts)).float()
    corner = torch.rand(len(image), 2) * stride * 9 - stride  # also beyond the edges of the map
    rois = torch.cat([image[:, None], corner, corner + torch.rand(len(image), 2) * stride * 8], dim=1)
    a = align_by_places(ours, rois, side, stride)
    b = roi_align(theirs, rois, side, 1 / stride, sampling_ratio=2, aligned=True)
    pull = torch.randn_like(b)
    (a * pull).sum().backward()
    (b * pull).sum().backward()
    assert a.shape == b.shape
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-4, rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), side=st.sampled_from([1, 4, 28]))
def test_a_pasted_mask_is_interpolated_at_the_centre_of_every_pixel(seed: int, side: int) -> None:
    rng = np.random.default_rng(seed)
    mask, (height, width) = rng.random((side, side)), (9, 13)
    left, top = rng.uniform(-3, 8, 2)
    right, bottom = left + rng.uniform(0.5, 9), top + rng.uniform(0.5, 9)
    found = paste(
        torch.from_numpy(mask)[None].float(), torch.tensor([[left, top, right, bottom]]), (height, width), 0.5
    )
    for y in range(height):
        for x in range(width):
            if not (left <= x + 0.5 <= right and top <= y + 0.5 <= bottom):
                assert not found[0, y, x]
                continue
            u = min(max((x + 0.5 - left) / (right - left) * side - 0.5, 0), side - 1)
            v = min(max((y + 0.5 - top) / (bottom - top) * side - 0.5, 0), side - 1)
            i, j = int(v), int(u)
            down, across = min(i + 1, side - 1), min(j + 1, side - 1)
            upper = mask[i, j] * (1 - (u - j)) + mask[i, across] * (u - j)
            lower = mask[down, j] * (1 - (u - j)) + mask[down, across] * (u - j)
            value = upper * (1 - (v - i)) + lower * (v - i)
            assert abs(value - 0.5) < 1e-4 or bool(found[0, y, x]) == (value > 0.5)

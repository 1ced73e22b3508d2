"""Boxes and masks go where their image goes: checked on the pixels themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from manylabel.data.object_transform import ObjectTransform, Placement, bounds, moved
from manylabel.detect.target import DetectionTarget
from manylabel.error import ConfigError
from manylabel.preprocess import Preprocess

SQUARE = Preprocess(64, (0.5,) * 3, (0.5,) * 3)
WIDTH, HEIGHT = 150, 100
BOXES = [(20, 30, 60, 80), (100, 10, 130, 90), (0, 0, 150, 9)]


def scene(boxes: list[tuple[int, int, int, int]] = BOXES) -> tuple[Image.Image, DetectionTarget]:
    """Black, with each object in a brightness of its own; the lower right quarter of each does not belong to it."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    masks = np.zeros((len(boxes), HEIGHT, WIDTH), bool)
    for number, (left, top, right, bottom) in enumerate(boxes):
        masks[number, top:bottom, left:right] = True
        masks[number, (top + bottom) // 2 : bottom, (left + right) // 2 : right] = False
        pixels[masks[number]] = 40 * (number + 1) + 20
    target = DetectionTarget(
        torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
        torch.arange(len(boxes)),
        torch.from_numpy(masks),
        torch.zeros(len(boxes), dtype=torch.bool),
    )
    return Image.fromarray(pixels), target


@pytest.mark.parametrize("resize", ["stretch", "pad"])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("scale", [(1.0, 1.0), (0.4, 0.9), (1.1, 2.0)])
def test_objects_lie_where_their_pixels_are(resize: str, flip: bool, scale: tuple[float, float]) -> None:
    transform = ObjectTransform(replace(SQUARE, resize=resize), flip, scale)
    image, target = scene()
    for seed in range(6):
        torch.manual_seed(seed)
        place = transform.place(WIDTH, HEIGHT)
        pixels, found = transform.pixels(image, place), moved(target, place)
        assert pixels.shape == (3, 64, 64)
        assert pixels.dtype == torch.uint8
        assert found.masks is not None
        for box, label, mask in zip(found.boxes, found.labels, found.masks, strict=True):
            outside = functional.pad((~mask).float(), (2, 2, 2, 2), value=1.0)
            beside = functional.max_pool2d(outside[None], 5, stride=1)[0].bool()
            assert ((pixels[0].int() - (40 * (int(label) + 1) + 20)).abs() <= 1)[~beside].all()  # edges are mixed
            inside = bounds(mask[None])[0]
            assert (inside[:2] >= box[:2].floor() - 1).all()
            assert (inside[2:] <= box[2:].ceil() + 1).all()
            assert (inside - box).abs().max() <= 1.5
            assert box.min() >= 0
            assert box.max() <= 64


def test_the_way_back_leads_to_the_stored_image() -> None:
    for transform in (
        ObjectTransform(SQUARE),
        ObjectTransform(replace(SQUARE, resize="pad"), flip=True, scale=(0.3, 1)),
    ):
        for seed in range(4):
            torch.manual_seed(seed)
            place = transform.place(WIDTH, HEIGHT)
            boxes = scene()[1].boxes
            torch.testing.assert_close(place.back(place.forward(boxes)), boxes, atol=1e-3, rtol=0)
    beyond = ObjectTransform(SQUARE).place(WIDTH, HEIGHT).back(torch.tensor([[-5.0, -5.0, 70.0, 70.0]]))
    assert beyond.tolist() == [[0, 0, WIDTH, HEIGHT]]


def test_mirroring_twice_changes_nothing() -> None:
    image, target = scene()
    plain = Placement((WIDTH, HEIGHT), 64, (64 / WIDTH, 64 / HEIGHT), (0.0, 0.0))
    mirrored = Placement((WIDTH, HEIGHT), 64, (-64 / WIDTH, 64 / HEIGHT), (64.0, 0.0))
    once, straight = moved(target, mirrored), moved(target, plain)
    torch.testing.assert_close(
        once.boxes[:, [2, 1, 0, 3]], straight.boxes * torch.tensor([-1, 1, -1, 1]) + torch.tensor([64, 0, 64, 0])
    )
    assert once.masks is not None
    assert straight.masks is not None
    assert torch.equal(once.masks.flip(2), straight.masks)
    pixels = [ObjectTransform(SQUARE).pixels(image, place) for place in (mirrored, plain)]
    assert torch.equal(pixels[0].flip(2), pixels[1])


def test_an_image_fills_the_input_or_lies_in_its_corner() -> None:
    white = Image.new("RGB", (WIDTH, HEIGHT), "white")
    for scale in ((0.3, 0.9), (1.0, 2.0)):
        transform = ObjectTransform(SQUARE, flip=True, scale=scale)
        for seed in range(8):
            torch.manual_seed(seed)
            place = transform.place(WIDTH, HEIGHT)
            side = min(64, round(abs(place.scale[0]) * WIDTH))
            expected = torch.full((64, 64), 128, dtype=torch.uint8)  # grey beside it
            expected[:side, :side] = 255
            assert torch.equal(transform.pixels(white, place)[0], expected)


def test_the_fixed_way_draws_nothing() -> None:
    torch.manual_seed(1)
    ObjectTransform(SQUARE).place(WIDTH, HEIGHT)
    after = torch.rand(2)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(2), after)


def test_chance_follows_the_generator() -> None:
    transform = ObjectTransform(SQUARE, flip=True, scale=(0.5, 2.0))
    places = []
    for seed in (1, 1, 2, 3):
        torch.manual_seed(seed)
        places.append(transform.place(WIDTH, HEIGHT))
    assert places[0] == places[1]
    assert len(set(places)) == 3
    drawn = [transform.place(WIDTH, HEIGHT) for _ in range(200)]
    scales = np.array([abs(place.scale[0]) * WIDTH / 64 for place in drawn])
    assert 0.49 < scales.min() < 0.6
    assert 1.9 < scales.max() < 2.01
    assert 60 < sum(place.scale[0] < 0 for place in drawn) < 140


def test_objects_that_leave_or_vanish_are_dropped_with_their_masks() -> None:
    _, target = scene([(20, 30, 60, 80), (130, 10, 148, 90), (70, 70, 71, 90), (90, 40, 110, 60)])
    left_part = Placement((WIDTH, HEIGHT), 64, (64 / 100, 64 / 100), (0.0, 0.0))  # x from 0 to 100
    found = moved(target, left_part)
    assert found.labels.tolist() == [0, 3]  # 1 is outside, 2 is 0.64 pixels wide
    assert found.masks is not None
    assert len(found.masks) == 2
    assert (found.boxes[1] - torch.tensor([57.6, 25.6, 64.0, 38.4])).abs().max() < 0.7  # cut at x = 64


def test_a_cut_object_has_a_box_around_what_is_left_of_it() -> None:
    masks = torch.zeros(1, HEIGHT, WIDTH, dtype=torch.bool)
    masks[0, 20:30, 50:140] = True  # a bar …
    masks[0, 20:80, 120:140] = True  # … that bends down on the right
    target = DetectionTarget(torch.tensor([[50.0, 20, 140, 80]]), torch.tensor([0]), masks, torch.tensor([False]))
    place = Placement((WIDTH, HEIGHT), 100, (1.0, 1.0), (0.0, 0.0))
    assert moved(target, place).boxes.tolist() == [[50, 20, 100, 30]]
    unknown = DetectionTarget(target.boxes, target.labels, None, target.ignore)
    assert moved(unknown, place).boxes.tolist() == [[50, 20, 100, 80]]
    undrawn = DetectionTarget(target.boxes, target.labels, masks & False, target.ignore)
    assert moved(undrawn, place).boxes.tolist() == [[50, 20, 100, 80]]


def test_a_picture_that_was_decoded_smaller_comes_to_the_same_place() -> None:
    image, _ = scene()
    transform = ObjectTransform(SQUARE, flip=True, scale=(0.7, 1.6))
    half = image.resize((WIDTH // 2, HEIGHT // 2), Image.Resampling.BOX)
    for seed in range(5):
        torch.manual_seed(seed)
        place = transform.place(WIDTH, HEIGHT)
        whole, small = (transform.pixels(each, place).float() for each in (image, half))
        assert (whole - small).abs().mean() < 12
    assert transform.at_least == 103


def test_pixels_alone_are_those_of_evaluation() -> None:
    image, _ = scene()
    transform = ObjectTransform(SQUARE)
    assert torch.equal(torch.from_numpy(transform(image)), transform.pixels(image, transform.place(WIDTH, HEIGHT)))


def test_no_objects_are_no_objects_anywhere() -> None:
    image, target = scene([])
    found = moved(target, ObjectTransform(SQUARE).place(*image.size))
    assert len(found) == 0
    assert found.boxes.shape == (0, 4)


def test_settings_that_lose_objects_are_refused() -> None:
    with pytest.raises(ConfigError, match="resize=crop would cut objects off"):
        ObjectTransform(replace(SQUARE, resize="crop"))
    for scale in ((0.0, 1.0), (2.0, 1.0), (float("nan"), 1.0)):
        with pytest.raises(ConfigError, match="scale must be"):
            ObjectTransform(SQUARE, scale=scale)

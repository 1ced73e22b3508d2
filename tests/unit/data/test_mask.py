"""Masks: what a label file says about the pixels of an object, against slow counting by hand."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco

from manylabel.data.mask import LabelImage, Polygons, RunLength
from manylabel.error import DataError

HERE = "labels.json, annotation 7"


def write_values(path: Path, values: np.ndarray) -> Path:
    """A palette image, as VOC has them: the palette must not matter."""
    image = Image.fromarray(values.astype(np.uint8), "P")
    image.putpalette([(37 * i + 11) % 256 for i in range(768)])
    image.save(path)
    return path


def runs_of(pixels: np.ndarray) -> list[int]:
    """Lengths of runs down the columns, beginning with background."""
    runs, value = [0], False
    for pixel in pixels.T.ravel():
        if pixel != value:
            runs.append(0)
            value = bool(pixel)
        runs[-1] += 1
    return runs


bitmaps = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 1)).map(
    lambda v: np.random.default_rng(v[2]).random((v[0], v[1])) < v[3]
)


@given(bitmaps)
@settings(max_examples=60, deadline=None)
def test_both_forms_of_run_lengths_give_the_pixels_back(pixels: np.ndarray) -> None:
    size = list(pixels.shape)
    text = coco.encode(np.asfortranarray(pixels, np.uint8))["counts"].decode("ascii")
    from_list = RunLength.of({"size": size, "counts": runs_of(pixels)}, HERE)
    from_text = RunLength.of({"size": size, "counts": text}, HERE)
    assert from_list == from_text
    np.testing.assert_array_equal(from_text.pixels(*pixels.shape), pixels)


def test_long_runs_of_a_large_image_survive_the_text() -> None:
    pixels = np.zeros((3000, 2000), bool)
    pixels[:, 1000:1500] = True
    pixels[1234, 3] = True
    text = coco.encode(np.asfortranarray(pixels, np.uint8))["counts"].decode("ascii")
    found = RunLength.of({"size": [3000, 2000], "counts": text}, HERE)
    np.testing.assert_array_equal(found.pixels(3000, 2000), pixels)


@given(st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
@settings(max_examples=300, deadline=None)
def test_a_text_is_refused_or_safe_to_decode(text: str) -> None:
    with contextlib.suppress(DataError):  # any other error is a fault, and so is a crash
        found = RunLength.of({"size": [7, 9], "counts": text}, HERE)
        assert sum(runs_of(found.pixels(7, 9))) == 63


def test_a_text_of_endless_digits_is_refused_at_once() -> None:
    with pytest.raises(DataError, match="annotation 7.*damaged"):
        RunLength.of({"size": [7, 9], "counts": "o" * 500_000 + "0"}, HERE)


@pytest.mark.parametrize(
    ("segmentation", "said"),
    [
        ({"counts": [63]}, "'size': \\[height, width\\], not None"),
        ({"size": [7], "counts": [7]}, "'size'"),
        ({"size": [7, -9], "counts": [63]}, "'size'"),
        ({"size": [70_000, 70_000], "counts": [70_000 * 70_000]}, "70000×70000 pixels is larger than any image"),
        ({"size": [7, 9], "counts": [60]}, "cover 60 pixels, its size 63"),
        ({"size": [7, 9], "counts": [70, -7]}, "'counts'"),
        ({"size": [7, 9], "counts": None}, "'counts'"),
        ({"size": [7, 9], "counts": ""}, "damaged"),
        ({"size": [7, 9], "counts": "äöü"}, "damaged"),
    ],
)
def test_a_bad_run_length_names_its_place(segmentation: dict, said: str) -> None:
    with pytest.raises(DataError, match=f"annotation 7: .*{said}"):
        RunLength.of(segmentation, HERE)


def test_a_run_length_for_another_image_size_is_refused() -> None:
    with pytest.raises(DataError, match="9×7 pixels for an image of 7×9"):
        RunLength.of({"size": [7, 9], "counts": [63]}, HERE).pixels(9, 7)


def test_polygons_fill_their_outlines_together() -> None:
    mask = Polygons.of([[2, 1, 6, 1, 6, 4, 2, 4], [8.0, 5.0, 10.0, 5.0, 10.0, 8.0, 8.0, 8.0]], HERE)
    expected = np.zeros((9, 12), bool)
    expected[1:4, 2:6] = True
    expected[5:8, 8:10] = True
    np.testing.assert_array_equal(mask.pixels(9, 12), expected)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([[1, 2, 3, 4]], "4 numbers; it needs three corners"),
        ([[1, 2, 3, 4, 5, 6, 7]], "7 numbers"),
        ([[1, 2, 3, 4, 5, "6"]], "flat list of numbers"),
        ([[1, 2, 3, 4, 5, None]], "flat list of numbers"),
        ([[[1, 2], [3, 4], [5, 6]]], "flat list of numbers"),
        ([[[1, 2], [3]]], "flat list of numbers"),
        ([5], "flat list of numbers"),
        ([[1, 2, 3, 4, 5, 1e300]], "beyond 100000 pixels"),
        ([[1, 2, 3, 4, 5, float("nan")]], "beyond 100000 pixels"),
        ([], "without a polygon"),
    ],
)
def test_a_bad_polygon_names_its_place(parts: list, said: str) -> None:
    with pytest.raises(DataError, match=f"annotation 7: .*{said}"):
        Polygons.of(parts, HERE)


def test_a_label_image_gives_one_value_and_void_to_nobody(tmp_path: Path) -> None:
    values = np.zeros((6, 8), int)
    values[1:3, 1:4], values[4:, 5:], values[3] = 1, 2, 255
    path = write_values(tmp_path / "objects.png", values)
    np.testing.assert_array_equal(LabelImage(path, 2).pixels(6, 8), values == 2)
    np.testing.assert_array_equal(LabelImage(path, 2).void(6, 8), values == 255)
    runs = LabelImage(path, 1).run_length(6, 8)
    np.testing.assert_array_equal(coco.decode(runs).astype(bool), values == 1)


def three_objects() -> tuple[np.ndarray, list[tuple[float, float, float, float]]]:
    """Values 1, 2, 3 at the top, in the middle and below, and their boxes a little larger."""
    values = np.zeros((60, 30), int)
    for i in range(3):
        values[20 * i + 3 : 20 * i + 17, 4:26] = i + 1
    return values, [(3, 20 * i + 2, 27, 20 * i + 18) for i in range(3)]


def test_order_decides_where_there_are_as_many_values_as_objects(tmp_path: Path) -> None:
    values, boxes = three_objects()
    path = write_values(tmp_path / "objects.png", values)
    swapped = (boxes[1], boxes[0], boxes[2])  # boxes lie badly, but the count is right
    np.testing.assert_array_equal(LabelImage(path, 1, swapped).pixels(60, 30), values == 1)


def test_a_value_too_many_is_found_by_overlap(tmp_path: Path) -> None:
    values, boxes = three_objects()
    path = write_values(tmp_path / "objects.png", values)
    rest = tuple(boxes[1:])  # the first object is not in the label file
    for number in (1, 2):
        np.testing.assert_array_equal(LabelImage(path, number, rest).pixels(60, 30), values == number + 1)


def test_an_object_without_pixels_gets_none_of_another(tmp_path: Path) -> None:
    values, boxes = three_objects()
    values[values == 2] = 0
    values[values == 3] = 2  # numbered on, as if the second object had never been there
    path = write_values(tmp_path / "objects.png", values)
    found = [LabelImage(path, number, tuple(boxes)).pixels(60, 30) for number in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], values == 1)
    assert not found[1].any()
    np.testing.assert_array_equal(found[2], values == 2)


def test_a_small_object_that_vanished_does_not_shift_the_others(tmp_path: Path) -> None:
    values, boxes = three_objects()
    values[values == 2] = 0  # 1 and 3 are left
    path = write_values(tmp_path / "objects.png", values)
    found = [LabelImage(path, number, tuple(boxes)).pixels(60, 30) for number in (1, 2, 3)]
    np.testing.assert_array_equal(found[2], values == 3)
    assert not found[1].any()


def test_a_label_image_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = write_values(tmp_path / "objects.png", np.zeros((6, 8), int))
    with pytest.raises(DataError, match=r"objects\.png has 8×6 pixels, its image 6×8"):
        LabelImage(path, 1).pixels(8, 6)
    Image.new("RGB", (8, 6)).save(tmp_path / "colour.png")
    with pytest.raises(DataError, match=r"colour\.png: .*one 8-bit channel"):
        LabelImage(tmp_path / "colour.png", 1).pixels(6, 8)
    with pytest.raises(DataError, match=r"gone\.png: "):
        LabelImage(tmp_path / "gone.png", 1).pixels(6, 8)

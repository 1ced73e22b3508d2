"""What a caller gives as an image is read by the stated rules, or refused with a reason; nothing is guessed or skipped."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from manylabel.data.given_image import read_image, read_images
from manylabel.error import DataError, DecodeError

GREY = np.array([[0, 100, 200], [50, 150, 255]], np.uint8)  # [H 2, W 3]
COLOUR = np.stack([GREY, GREY[::-1], 255 - GREY], axis=2)


def pixels(image: Any) -> np.ndarray:
    """[H, W, 3] of an image that can be read."""
    (found,) = read_images([image])
    assert found.error is None
    assert found.picture is not None
    assert found.picture.mode == "RGB"
    assert found.size == found.picture.size
    return np.asarray(found.picture)


def refusal(image: Any) -> str:
    """Why it is refused: in a list as an error, alone as an exception that says the same."""
    (found,) = read_images([image])
    assert found.picture is None
    assert found.error
    with pytest.raises(DecodeError) as caught:
        list(read_images(image))
    assert str(caught.value) == f"{found.name}: {found.error}"
    return found.error


def rgb(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[:, :, None], 3, axis=2)


# --- what values mean ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64])
def test_arrays_of_0_to_255_in_a_wide_type_are_not_black(dtype: type) -> None:
    assert (pixels(GREY.astype(dtype)) == rgb(GREY)).all()
    assert (pixels(COLOUR.astype(dtype)) == COLOUR).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64, np.float32])
def test_arrays_of_sixteen_bits_keep_their_high_byte(dtype: type) -> None:
    assert (pixels((GREY.astype(np.int64) * 257).astype(dtype)) == rgb(GREY)).all()
    assert (pixels((COLOUR.astype(np.int64) * 257).astype(dtype)) == COLOUR).all()


def test_sixteen_bits_that_reach_only_255_are_refused_and_black_is_black() -> None:
    assert "give uint8" in refusal(GREY.astype(np.uint16))
    assert "give uint8" in refusal(Image.fromarray(GREY.astype(np.uint16)))
    assert not pixels(np.zeros((2, 3), np.uint16)).any()


def test_wide_modes_of_pil_are_read_as_the_arrays_they_are() -> None:
    assert (pixels(Image.fromarray(GREY.astype(np.int32))) == rgb(GREY)).all()
    assert (pixels(Image.fromarray(GREY.astype(np.float32))) == rgb(GREY)).all()
    assert (pixels(Image.fromarray(GREY.astype(np.uint16) * 257)) == rgb(GREY)).all()
    assert "below 0" in refusal(Image.fromarray(np.array([[-1, 5]], np.int32)))


def test_a_file_that_pil_opened_is_read_as_the_file_is(tmp_path: Path) -> None:
    dark = np.array([[0, 100, 255, 256]], np.uint16)  # a 16-bit file says by its type what white is
    Image.fromarray(dark).save(tmp_path / "dark.png")
    for image in (tmp_path / "dark.png", Image.open(tmp_path / "dark.png")):
        assert pixels(image)[0, :, 0].tolist() == [0, 0, 0, 1]


def test_a_32_bit_tiff_of_0_to_255_is_not_black(tmp_path: Path) -> None:
    Image.fromarray(GREY.astype(np.int32)).save(tmp_path / "a.tif")
    for image in (tmp_path / "a.tif", Image.open(tmp_path / "a.tif")):
        assert (pixels(image) == rgb(GREY)).all()


def test_floats_up_to_1_and_booleans_and_half_floats() -> None:
    assert (pixels(GREY / 255) == rgb(GREY)).all()
    assert (pixels((COLOUR / 255).astype(np.float32)) == COLOUR).all()
    assert (pixels(GREY > 120) == rgb(np.where(GREY > 120, 255, 0))).all()
    assert (pixels(COLOUR > 120) == np.where(COLOUR > 120, 255, 0)).all()
    half = torch.from_numpy(GREY / 255).to(torch.bfloat16)
    assert np.abs(pixels(half).astype(int) - rgb(GREY)).max() <= 1


@pytest.mark.parametrize("white", [1, 255, 65535])
def test_floats_a_little_beyond_black_and_white_are_clipped(white: int) -> None:
    """As a bicubic filter leaves them; 1.01 made the picture black."""
    for low, high in ((0.0, 1.01), (-0.1, 1.1), (0.0, 1.12), (-0.12, 1.0)):
        found = pixels(np.array([[low, 0.0, 0.5, 1.0, high]], np.float64) * white)[0, :, 0]
        assert found.tolist() == [0, 0, 128, 255, 255]
    enlarged = Image.fromarray((GREY / 255).astype(np.float32)).resize((40, 40), Image.Resampling.BICUBIC)
    values = np.asarray(enlarged)
    assert values.min() < 0
    assert values.max() > 1
    wanted = np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    assert (pixels(values * white) == rgb(wanted)).all()


@pytest.mark.parametrize(
    ("highest", "dtype"),
    [
        *((1, kind) for kind in (np.int16, np.int32, np.int64, np.uint16, np.uint32)),
        *((300, kind) for kind in (np.int16, np.int32, np.int64, np.uint16, np.uint32, np.float32)),
        (4095, np.uint16),
        (4095, np.int32),
        (15, np.int64),
        (1.2, np.float32),
        (15.9, np.float64),
        (290, np.float32),
        (4095, np.float32),
    ],
)
def test_where_nobody_can_tell_what_is_white_the_picture_is_not_black(highest: float, dtype: type) -> None:
    image = np.array([[0, highest / 2, highest]]).astype(dtype)
    assert "does not tell what is white; give " in refusal(image)
    assert ("bool for a mask" in refusal(image)) == (highest == 1)
    if dtype in (np.int32, np.float32):
        assert "does not tell what is white" in refusal(Image.fromarray(image))


def test_dark_pictures_are_dark_where_the_type_or_the_range_tells() -> None:
    dark = np.array([[0, 1, 5]])
    assert (pixels(dark.astype(np.uint8)) == rgb(dark)).all()
    assert (pixels(dark / 255) == rgb(dark)).all()
    assert (pixels((dark * 4).astype(np.int64)) == rgb(dark * 4)).all()
    assert pixels(np.array([[0, 4096]], np.uint16))[0, :, 0].tolist() == [0, 16]
    assert not pixels(np.zeros((2, 3), np.int64)).any()


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (np.array([[0.5, np.nan]]), "NaN"),
        (np.array([[-0.13, 1.0]]), "before normalisation"),
        (np.array([[-0.1, 0.0]]), "before normalisation"),
        (np.array([[-1, 255]]), "before normalisation"),
        (np.array([[0.5, np.inf]]), "infinite"),
        (np.array([[-0.1, 0.5]]), "before normalisation"),
        (torch.tensor([[-2.1, 2.6]]), "before normalisation"),
        (np.array([[0, 70_000]]), "65535"),
        (np.array([[0.0, 1e6]]), "65535"),
        (np.array([[1 + 2j]]), "complex128"),
        (np.array([[None, "a"]]), "object"),
    ],
)
def test_values_that_mean_nothing_are_refused(image: Any, why: str) -> None:
    assert why in refusal(image)


# --- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 5, 3), (5, 0, 3), (0, 0, 3)])
def test_empty_crops_get_no_labels(shape: tuple[int, ...]) -> None:
    assert "no pixels" in refusal(np.zeros(shape, np.uint8))
    assert "no pixels" in refusal(torch.zeros(shape[2:] + shape[:2]))


@pytest.mark.parametrize("size", [(0, 5), (5, 0)])
def test_an_empty_pil_image_is_refused(size: tuple[int, int]) -> None:
    assert "no pixels" in refusal(Image.new("RGB", size))
    assert "no pixels" in refusal(Image.new("RGB", (9, 9)).crop((3, 3, 3 + size[0], 3 + size[1])))


def test_layouts_of_arrays_and_tensors() -> None:
    alpha = np.full_like(GREY, 255)
    for array, wanted in (
        (GREY, rgb(GREY)),
        (GREY[:, :, None], rgb(GREY)),
        (np.stack([GREY, alpha], 2), rgb(GREY)),
        (COLOUR, COLOUR),
        (np.dstack([COLOUR, alpha]), COLOUR),
        (np.dstack([COLOUR, 0 * alpha]), np.full_like(COLOUR, 255)),  # transparent is white
        (COLOUR[:, ::-1], COLOUR[:, ::-1]),
    ):
        assert (pixels(array) == wanted).all()
        tensor = torch.from_numpy(array.copy())
        assert (pixels(tensor if tensor.ndim == 2 else tensor.permute(2, 0, 1)) == wanted).all()


def test_a_shape_that_is_no_image_says_what_to_do() -> None:
    wide = np.zeros((3, 40, 50), np.uint8)
    assert ".transpose(1, 2, 0)" in refusal(wide)
    assert ".permute(2, 0, 1)" in refusal(torch.zeros(40, 50, 3))
    assert "7 channels" in refusal(np.zeros((40, 50, 7)))
    for shape in ((12,), (), (2, 2, 2, 2, 3)):
        assert "shape" in refusal(np.zeros(shape, np.uint8))
        assert "shape" in refusal(torch.zeros(shape))


def test_an_array_or_tensor_of_four_dimensions_is_several_images() -> None:
    several = np.stack([COLOUR, 255 - COLOUR])
    for images in (several, torch.from_numpy(several).permute(0, 3, 1, 2)):
        found = list(read_images(images))
        assert [one.name for one in found] == ["image 1", "image 2"]
        assert (np.asarray(found[1].picture) == 255 - COLOUR).all()
    assert list(read_images(np.zeros((0, 5, 5, 3), np.uint8))) == []
    assert [one.error for one in read_images([several])] != [None]  # as one of a list it is not


def test_arrays_of_other_libraries_are_arrays() -> None:
    class Theirs:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return COLOUR

        def __iter__(self) -> Any:
            raise AssertionError("one prediction per row")

    (found,) = read_images(Theirs())  # type: ignore[arg-type]
    assert (np.asarray(found.picture) == COLOUR).all()


# --- files, bytes, names ---------------------------------------------------------------------------------------------


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Image.fromarray(COLOUR).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO])
def test_bytes_of_any_kind_are_one_image(photo: Path, kind: Callable[[bytes], Any]) -> None:
    found = list(read_images(kind(photo.read_bytes())))
    assert [one.name for one in found] == ["image 1"]
    assert (np.asarray(found[0].picture) == COLOUR).all()
    with pytest.raises(DecodeError):
        list(read_images(kind(b"nonsense")))


def test_a_memoryview_of_pixels_is_refused() -> None:
    assert "memoryview of pixels" in refusal(memoryview(COLOUR))
    assert "memoryview of pixels" in refusal(memoryview(np.arange(5)))


def test_a_missing_file_and_a_folder_are_errors_that_say_so(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing.jpg") == "file not found"
    assert refusal(str(tmp_path / "missing.jpg")) == "file not found"
    assert "find_images" in refusal(tmp_path)
    assert "find_images" in refusal(str(tmp_path))
    with pytest.raises(DecodeError, match=r"missing\.jpg: file not found"):
        list(read_images(str(tmp_path / "missing.jpg")))


@pytest.mark.parametrize("images", [None, 7, 3.5, {"a.jpg": 1}, object()])
def test_what_is_no_image_at_all_is_refused(images: Any) -> None:
    with pytest.raises(DataError, match="not an image"):
        list(read_images(images))


def test_a_list_of_what_is_no_image_names_the_type() -> None:
    errors = [one.error for one in read_images([7, None, [1, 2], {}])]  # type: ignore[list-item]
    assert all("not an image" in str(error) for error in errors)
    assert "int" in str(errors[0])


def test_a_column_of_file_names_is_several_images(photo: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for names in (np.array([str(photo)] * 2), pandas.Series([str(photo)] * 2), (photo for _ in range(2))):
        assert [one.error for one in read_images(names)] == [None, None]


def test_a_file_opened_as_text_says_how_to_open_it(photo: Path) -> None:
    with open(photo, encoding="latin-1") as file:
        assert '"rb"' in refusal(file)


def test_a_pil_image_whose_file_is_damaged_or_closed(photo: Path, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.png")
    (tmp_path / "half.png").write_bytes((tmp_path / "whole.png").read_bytes()[:6000])
    assert "truncated" in refusal(Image.open(tmp_path / "half.png"))
    closed = Image.open(photo)
    closed.close()
    (found,) = read_images([closed])
    assert found.error


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_name_that_is_not_utf_8_is_read(photo: Path) -> None:
    odd = os.fsencode(photo.parent) + b"/caf\xe9.png"
    os.rename(photo, odd)
    found = read_image(os.fsdecode(odd))
    assert found.error is None
    assert os.fsencode(found.name) == odd

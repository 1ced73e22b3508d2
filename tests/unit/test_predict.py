"""Predictor: an image that cannot be read is never one in which nothing was found."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from explained import bundle, photos
from PIL import Image

from manylabel.error import ConfigError, DataError, DecodeError
from manylabel.explain import explain
from manylabel.inference.images import find_images
from manylabel.inference.prediction import Prediction
from manylabel.inference.predictor import Predictor


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(bundle(), "cpu")


def test_a_missing_file_a_folder_and_damaged_bytes_raise_when_they_are_the_only_image(
    predictor: Predictor, tmp_path: Path
) -> None:
    for image in (tmp_path / "missing.jpg", str(tmp_path / "missing.jpg")):
        with pytest.raises(DecodeError, match=r"missing\.jpg: file not found"):
            predictor.predict(image)
    with pytest.raises(DecodeError, match="is a folder; .*find_images"):
        predictor.predict(tmp_path)
    for damaged in (b"", b"nonsense", io.BytesIO(b"nonsense")):
        with pytest.raises(DecodeError, match="image 1: "):
            predictor.predict(damaged)
    with pytest.raises(DecodeError, match="missing"):
        list(predictor.stream("missing.jpg"))
    with pytest.raises(DecodeError, match="missing"):
        explain(predictor, "missing.jpg")


def test_among_several_an_unreadable_image_has_an_error_and_is_not_one_without_labels(
    predictor: Predictor, tmp_path: Path
) -> None:
    good, missing, folder = predictor.predict([photos(1)[0], tmp_path / "missing.jpg", tmp_path])
    assert good.error is None
    assert missing.error == "file not found"
    assert "folder" in str(folder.error)
    for look in (
        lambda: missing.present,
        lambda: list(missing.labels),
        lambda: len(missing.labels),
        lambda: missing.labels[0],
        lambda: missing.labels[:5],
        lambda: bool(missing.labels),
        lambda: "ant" in missing.labels,
        lambda: reversed(missing.labels),
    ):
        with pytest.raises(DecodeError, match=r"missing\.jpg: file not found"):
            look()
    assert missing.plain() == {"image": str(tmp_path / "missing.jpg"), "error": "file not found"}


def test_a_prediction_with_an_error_is_shown_compared_and_stored_like_any_other() -> None:
    one = Prediction("a.jpg", error="empty file")
    assert "empty file" in repr(one)
    assert one == Prediction("a.jpg", error="empty file")
    assert one != Prediction("a.jpg")
    assert len({one, Prediction("a.jpg", error="empty file")}) == 1
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301 (our own)
        assert again == one
        with pytest.raises(DecodeError, match="a.jpg: empty file"):
            _ = again.present


def test_pixels_are_one_image_however_they_come(predictor: Predictor) -> None:
    (picture,) = photos(1)
    array = np.asarray(picture)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    (wanted,) = predictor.predict(picture)
    alike: list[Any] = [array, array.astype(np.int64), array / 255, torch.from_numpy(array.copy()).permute(2, 0, 1)]
    alike += [buffer.getvalue(), bytearray(buffer.getvalue()), memoryview(buffer.getvalue())]
    for image in alike:
        (found,) = predictor.predict(image)
        assert found.labels == wanted.labels
        (shown,) = explain(predictor, image, ["ant"])
        assert shown.size == picture.size


def test_an_array_of_four_dimensions_is_several_images(predictor: Predictor) -> None:
    pictures = photos(3)
    found = predictor.predict(np.stack([np.asarray(picture) for picture in pictures]))
    assert [one.present for one in found] == [one.present for one in predictor.predict(pictures)]


def test_crops_without_pixels_and_arrays_of_one_dimension_get_no_labels(predictor: Predictor) -> None:
    empty = np.asarray(photos(1)[0])[10:10]
    for image in (empty, empty.T, Image.new("RGB", (0, 4)), np.arange(99, dtype=np.uint8), torch.zeros(7)):
        with pytest.raises(DecodeError):
            predictor.predict(image)
        assert predictor.predict([image])[0].error


def test_what_is_no_image_is_refused(predictor: Predictor) -> None:
    for image in (None, 5, {"a.jpg": 1}):
        with pytest.raises(DataError, match="not an image"):
            predictor.predict(image)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, -1, 2.5, "8", None, True])
def test_a_batch_size_that_is_no_count_is_refused(size: Any) -> None:
    with pytest.raises(ConfigError, match="batch_size"):
        Predictor(bundle(), "cpu", batch_size=size)


@pytest.mark.parametrize("size", [1, 2, np.int64(3), 100])
def test_any_count_gives_the_same_answers_in_order(predictor: Predictor, size: int) -> None:
    images = [*photos(4), b"broken", *photos(2)]
    found = Predictor(predictor.bundle, "cpu", batch_size=size).predict(images)
    wanted = predictor.predict(images)
    assert [one.image for one in found] == [one.image for one in wanted]
    assert [one.error for one in found] == [one.error for one in wanted]
    scores = [sorted((e.label, e.score) for e in one.labels) for one in (*found, *wanted) if one.error is None]
    for one, other in zip(scores[:6], scores[6:], strict=True):
        assert [s for _, s in one] == pytest.approx([s for _, s in other], abs=1e-5)


def test_the_images_of_a_folder_are_found_from_its_name(predictor: Predictor, tmp_path: Path) -> None:
    for i, picture in enumerate(photos(3)):
        picture.save(tmp_path / f"{i}.png")
    for folder in (tmp_path, str(tmp_path), [tmp_path]):
        assert len(predictor.predict(find_images(folder))) == 3

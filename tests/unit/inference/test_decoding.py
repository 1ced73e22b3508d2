"""Images that workers decode get the same answers, in the same order, as those decoded here."""

from __future__ import annotations

import gc
import io
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from explained import bundle, photos

from manylabel.error import DecodeError
from manylabel.inference.decoding import AHEAD
from manylabel.inference.predictor import Predictor


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(bundle(), "cpu", batch_size=4)


def given(folder: Path) -> Iterator[object]:
    """Of every kind: files, bytes, streams that are open here, pictures, arrays, and what cannot be read."""
    for number, photo in enumerate(photos(9)):
        photo.save(folder / f"{number}.png")
        data = (folder / f"{number}.png").read_bytes()
        kinds = (
            folder / f"{number}.png",
            str(folder / f"{number}.png"),
            data,
            io.BytesIO(data),
            photo,
            np.asarray(photo),
        )
        yield kinds[number % len(kinds)]
        if number % 4 == 0:
            yield folder / "missing.jpg"
        if number % 5 == 0:
            yield io.BytesIO(b"nonsense")


def test_workers_change_nothing_but_the_time(predictor: Predictor, tmp_path: Path) -> None:
    state = torch.get_rng_state()
    here = [answer.plain() for answer in predictor.predict(given(tmp_path))]
    there = [answer.plain() for answer in predictor.predict(given(tmp_path), workers=2)]
    assert there == here
    assert sum("error" in answer for answer in here) == 5
    assert len(here) == 14
    assert torch.equal(torch.get_rng_state(), state)


def test_images_without_end_are_answered_in_bounded_memory(predictor: Predictor, tmp_path: Path) -> None:
    photos(1)[0].save(tmp_path / "photo.png")
    taken = itertools.count()
    endless = (tmp_path / "photo.png" for _ in taken)
    answers = list(itertools.islice(predictor.stream(endless, workers=1), 12))
    assert len({answer.labels for answer in answers}) == 1
    assert next(taken) <= 12 + AHEAD + 4


def test_one_image_alone_raises_whatever_the_workers(predictor: Predictor, tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r"missing\.jpg: file not found"):
        predictor.predict(tmp_path / "missing.jpg", workers=2)
    assert not _decoders()


def test_workers_end_when_nobody_asks_any_more(predictor: Predictor, tmp_path: Path) -> None:
    photos(1)[0].save(tmp_path / "photo.png")
    answers = predictor.stream([tmp_path / "photo.png"] * 100, workers=2)
    assert next(answers).error is None
    assert len(_decoders()) == 2
    answers.close()  # type: ignore[attr-defined]
    del answers
    gc.collect()
    assert not _decoders()


def _decoders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("decode")]

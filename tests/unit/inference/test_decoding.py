"""Images that worker processes decode get the same answers, in the same order, as those decoded here."""

from __future__ import annotations

import io
import itertools
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from explained import bundle, photos

from manylabel.error import DecodeError
from manylabel.inference.decoding import WORTH_A_WORKER, worth_workers
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
    assert next(taken) < 40


def test_one_image_alone_raises_whatever_the_workers(predictor: Predictor, tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r"missing\.jpg: file not found"):
        predictor.predict(tmp_path / "missing.jpg", workers=2)
    assert not multiprocessing.active_children()


def test_a_worker_is_started_only_for_images_that_keep_it_busy() -> None:
    assert [worth_workers(n, 2) for n in (1, WORTH_A_WORKER, 2 * WORTH_A_WORKER, 10_000)] == [0, 1, 2, 2]
    assert worth_workers(10_000, 0) == 0

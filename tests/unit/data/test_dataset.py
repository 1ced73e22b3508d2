from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manylabel.config import AugmentConfig, DataConfig
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.error import DataError
from manylabel.preprocess import Preprocess
from manylabel.training.feed import PixelFeed

PREPROCESS = Preprocess(32, (0.5,) * 3, (0.5,) * 3)
ROWS = np.arange(11)


def _all(batches: EpochBatches) -> list[int]:
    return [row for batch in batches for _, row in batch]


def test_every_row_once_per_epoch_in_another_order_each_time() -> None:
    batches = EpochBatches(ROWS, 4, shuffle=True, seed=1)
    orders = []
    for epoch in range(3):
        batches.epoch = epoch
        orders.append(_all(batches))
        assert sorted(orders[-1]) == ROWS.tolist()
    assert orders[0] != orders[1] != orders[2]
    assert len(batches) == 3


def test_starting_late_gives_the_rest_of_the_same_epoch() -> None:
    batches = EpochBatches(ROWS, 4, shuffle=True, seed=1)
    whole = list(batches)
    batches.start = 2
    assert list(batches) == whole[2:]


@pytest.mark.parametrize("world", [2, 3])
def test_processes_share_the_work(world: int) -> None:
    parts = [EpochBatches(ROWS, 4, shuffle=True, seed=1, rank=r, world=world) for r in range(world)]
    assert len({len(list(p)) for p in parts}) == 1  # equally many steps, or they would wait for each other for ever
    assert {row for p in parts for row in _all(p)} == set(ROWS.tolist())
    judged = [row for r in range(world) for row in _all(EpochBatches(ROWS, 4, shuffle=False, rank=r, world=world))]
    assert sorted(judged) == ROWS.tolist()  # evaluation: each exactly once


@pytest.fixture
def damaged(photos: Path) -> Path:
    (photos / "images" / "photo005.jpg").write_bytes(b"<html>not found</html>")
    whole = (photos / "images" / "photo007.jpg").read_bytes()
    (photos / "images" / "photo007.jpg").write_bytes(whole[: len(whole) // 2])
    return photos


@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_images_are_dropped_and_never_replaced(damaged: Path, workers: int) -> None:
    table = read_table(DataConfig(path=str(damaged)))
    feed = PixelFeed(table, EpochBatches(np.arange(len(table)), 8, shuffle=False), PREPROCESS, workers=workers)
    batches = list(feed.batches())
    rows = torch.cat([batch.rows for batch in batches]).tolist()
    assert rows == [i for i in range(len(table)) if i not in (5, 7)]
    bad = dict(pair for batch in batches for pair in batch.bad)
    assert set(bad) == {"photo005.jpg", "photo007.jpg"}
    assert "HTML" in bad["photo005.jpg"]


def test_augmentation_depends_on_seed_epoch_and_row_alone(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    augment = AugmentConfig(flip=True, random_crop=0.5)

    def epoch(number: int, workers: int, batch: int, start: int = 0, seed: int = 3) -> dict[int, torch.Tensor]:
        order = EpochBatches(np.arange(len(table)), batch, shuffle=True, seed=seed)
        feed = PixelFeed(table, order, PREPROCESS, augment=augment, workers=workers, seed=seed)
        found = list(feed.batches(number, start))
        return {int(row): image for b in found for row, image in zip(b.rows, b.inputs, strict=True)}

    reference = epoch(1, workers=0, batch=8)
    for other in (epoch(1, workers=2, batch=8), epoch(1, workers=0, batch=5)):
        assert all(torch.equal(reference[row], other[row]) for row in reference)
    late = epoch(1, workers=2, batch=8, start=3)
    assert len(late) == len(table) - 24
    assert all(torch.equal(reference[row], late[row]) for row in late)
    assert any(not torch.equal(reference[row], image) for row, image in epoch(2, 0, 8).items())


@pytest.mark.parametrize("augment", [None, AugmentConfig(flip=True, randaugment=5, cutout=0.3)])
def test_workers_that_are_spawned_can_be_given_the_data_set(photos: Path, augment: AugmentConfig | None) -> None:
    table = read_table(DataConfig(path=str(photos)))
    order = EpochBatches(np.arange(8), 4, shuffle=False)
    dataset = PixelFeed(table, order, PREPROCESS, augment=augment, workers=0).loader.dataset
    copied = pickle.loads(pickle.dumps(dataset))  # noqa: S301 (our own bytes)
    assert torch.equal(copied[(0, 3)][1], dataset[(0, 3)][1])


def test_main_process_randomness_is_left_alone(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    order = EpochBatches(np.arange(len(table)), 8, shuffle=False)
    feed = PixelFeed(table, order, PREPROCESS, augment=AugmentConfig(flip=True), workers=0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    next(iter(feed.batches()))
    assert torch.equal(torch.rand(3), expected)


def test_bad_images_are_listed_once_and_limited(tmp_path: Path) -> None:
    bad = BadImages(total=100, max_share=0.02, out=tmp_path / "bad_images.csv")
    bad.add([("a.jpg", "empty"), ("=b.jpg", "truncated")])
    bad.add([("a.jpg", "again")])
    assert (tmp_path / "bad_images.csv").read_text() == "file_name,reason\na.jpg,empty\n'=b.jpg,truncated\n"
    with pytest.raises(DataError, match=r"3 of 100 images cannot be read.*max_bad_share"):
        bad.add([("c.jpg", "empty")])
    assert "c.jpg" in (tmp_path / "bad_images.csv").read_text()


def test_a_resumed_run_takes_up_its_list_of_bad_images(tmp_path: Path) -> None:
    out = tmp_path / "bad_images.csv"
    BadImages(100, 0.5, out).add([("a.jpg", "empty"), ("=b.jpg", "cut, in half")])
    again = BadImages(100, 0.5, out)
    again.recall()
    again.add([("c.jpg", "empty"), ("=b.jpg", "again")])
    assert again.reasons == {"a.jpg": "empty", "=b.jpg": "cut, in half", "c.jpg": "empty"}


def test_missing_files_can_be_dropped(photos: Path) -> None:
    (photos / "images" / "photo001.jpg").unlink()
    config = DataConfig(path=str(photos))
    with pytest.raises(DataError, match="row 3: 'photo001.jpg' is not there"):
        read_table(config)
    table = read_table(replace(config, missing="drop"))
    assert table.keys[:3].tolist() == ["photo000.jpg", "photo002.jpg", "photo003.jpg"]
    assert len(table) == len(table.matrix) == 47
    assert any("1 rows were left out" in note for note in table.notes)

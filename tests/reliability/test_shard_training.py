"""Training from shards: taken up in the middle it ends with the very bits of a run that was not stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_files import make_samples, write_parquet_shards, write_tar_shards

from manylabel import run
from manylabel.config import DataConfig
from manylabel.data.dataset import Batch
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard import parquet_source
from manylabel.data.shard.blocks import blocks_of
from manylabel.preprocess import Preprocess
from manylabel.stop import Stopped
from manylabel.storage.atomic import sha256
from manylabel.training.feed import PixelFeed
from manylabel.training.loop import Trainer

GROUP = 6  # rows of a row group
SETTINGS = ["backbone.freeze=full", "train.epochs=2", "train.batch_size=8", "train.cache=off", "augment.flip=true"]
SETTINGS += ["data.validation_share=0.17"]  # 48 photos: 2 epochs × 5 batches


@pytest.fixture
def shards(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    samples = make_samples(tmp_path / "photos", 48)
    if request.param == "tar":
        return write_tar_shards(tmp_path / "tar", samples)
    largest = GROUP * max(len(image) for _, image, _ in samples)
    monkeypatch.setattr(parquet_source, "KEPT_BYTES", 2 * largest)  # so that a window is two of eight row groups
    return write_parquet_shards(tmp_path / "parquet", samples, group=GROUP)


def _stop_after(patch: pytest.MonkeyPatch, batches: int) -> list[np.ndarray]:
    """Ask for a stop as a signal would; returns the rows of the batches that are trained on."""
    seen: list[np.ndarray] = []
    learn = Trainer._pass

    def counting(self: Trainer, name: str, batch: Batch, *more: Any) -> float:
        seen.append(batch.rows.numpy())
        if len(seen) == batches:
            self.stop.signal = signal.SIGTERM
        return learn(self, name, batch, *more)

    patch.setattr(Trainer, "_pass", counting)
    return seen


@pytest.mark.parametrize("shards", ["tar", "parquet"], indirect=True)
@pytest.mark.parametrize("workers", [0, 2])
def test_stopped_runs_end_bit_for_bit_the_same(
    shards: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    settings = [*tiny_settings, *SETTINGS, f"data.workers={workers}"]
    with monkeypatch.context() as patch:
        whole = _stop_after(patch, -1)
        run.train(str(shards), out=tmp_path / "whole", settings=settings)
    with monkeypatch.context() as patch:
        cut = _stop_after(patch, 7)
        with pytest.raises(Stopped):
            run.train(str(shards), out=tmp_path / "cut", settings=settings)
    with monkeypatch.context() as patch:
        rest = _stop_after(patch, -1)
        run.train(str(shards), out=tmp_path / "cut", settings=settings, resume=True)
    assert [rows.tolist() for rows in cut + rest] == [rows.tolist() for rows in whole]
    first, second = np.concatenate(whole[:5]), np.concatenate(whole[5:])
    assert sorted(first.tolist()) == sorted(second.tolist())
    assert first.tolist() != second.tolist()
    if shards.name == "parquet":  # the order that suits row groups, two at a time
        for batches in (whole[:5], whole[5:]):
            assert len(set((batches[0] // GROUP).tolist())) <= 3
    weights = "bundle/weights.safetensors"
    assert sha256(tmp_path / "cut" / weights) == sha256(tmp_path / "whole" / weights)
    results = [(tmp_path / name / "results.json").read_text().split('"data"')[1] for name in ("cut", "whole")]
    assert results[0] == results[1]


@pytest.mark.parametrize("shards", ["parquet"], indirect=True)
def test_row_groups_are_read_once_an_epoch(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of reading fits what a process keeps: without it, most images would cost a whole row group."""
    reads: list[int] = []
    read = parquet_source.ParquetSource._read

    def counting(
        self: parquet_source.ParquetSource, shard: parquet_source.ParquetShard, group: int, leaf: str
    ) -> object:
        reads.append(group)
        return read(self, shard, group, leaf)

    monkeypatch.setattr(parquet_source.ParquetSource, "_read", counting)
    table = read_table(DataConfig(path=str(shards)))
    counts = []
    for blocks in (blocks_of(table.source, table.keys), None):
        order = EpochBatches(np.arange(len(table)), 8, shuffle=True, blocks=blocks)
        feed = PixelFeed(table, order, Preprocess(32, (0.5,) * 3, (0.5,) * 3), workers=0)
        for epoch in range(3):
            reads.clear()
            assert sum(len(batch) for batch in feed.batches(epoch)) == 48
            counts.append(len(reads))
    assert max(counts[:3]) <= 8
    assert min(counts[3:]) > 24


@pytest.mark.parametrize("shards", ["tar", "parquet"], indirect=True)
def test_features_of_shards_are_computed_once(
    shards: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*tiny_settings, "train.epochs=1", "data.workers=0", "backbone.freeze=frozen"]
    run.train(str(shards), out=tmp_path / "first", settings=settings)
    monkeypatch.setattr("manylabel.cache.extract._extract", None)  # it would be called for a missing one
    run.train(str(shards), out=tmp_path / "second", settings=settings)
    weights = "bundle/weights.safetensors"
    assert sha256(tmp_path / "first" / weights) == sha256(tmp_path / "second" / weights)
    results, _ = run.evaluate(tmp_path / "first")
    assert results["data"]["split"] == "val"

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manylabel.config import Config, DataConfig, make_config
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.error import CheckpointError
from manylabel.model import Model
from manylabel.training import feature_cache
from manylabel.training.feature_cache import Announcement, FeatureCache, cached_features
from manylabel.training.feed import Placed
from manylabel.training.stop import Stopped, StopRequest


def _config(tiny: list[str]) -> Config:
    return make_config(settings=tiny)


@pytest.fixture
def table(photos: Path) -> Table:
    return read_table(DataConfig(path=str(photos)))


@pytest.fixture
def model(table: Table, tiny_settings: list[str]) -> Model:
    torch.manual_seed(0)
    return Model(_config(tiny_settings), len(table.labels)).eval()


def _cache(model: Model, table: Table, **options: object) -> FeatureCache:
    return cached_features(model, table, model.backbone.preprocess, workers=0, **options)  # type: ignore[arg-type]


def _count_forwards(model: Model) -> list[int]:
    seen: list[int] = []
    model.backbone.register_forward_hook(lambda _m, inputs, _o: seen.append(len(inputs[0])))
    return seen


def test_cached_logits_equal_those_from_pixels(model: Model, table: Table) -> None:
    from manylabel.data.sampler import EpochBatches
    from manylabel.training.feed import PixelFeed

    cache = _cache(model, table)
    feed = PixelFeed(
        table, EpochBatches(np.arange(len(table)), 16, shuffle=False), model.backbone.preprocess, workers=0
    )
    with torch.inference_mode():
        direct = torch.cat([model(batch.inputs) for batch in feed.batches()])
        rows = np.array([3, 1, 40, 7])
        assert torch.allclose(model(cache.features(rows)), direct[rows], atol=1e-5)


def test_the_second_time_the_backbone_is_not_touched(model: Model, table: Table) -> None:
    _cache(model, table)
    seen = _count_forwards(model)
    told: list[Announcement] = []
    again = _cache(model, table, announce=told.append)
    assert seen == []
    assert told[0].done == told[0].images == len(table)
    assert again.arrays["final"].shape == (len(table), 256, 1, 1)  # a pooled head needs no places


def test_size_is_announced_before_writing_and_refused_on_a_small_disk(
    model: Model, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10, 0, 1000))
    with pytest.raises(CheckpointError, match=r"features need 0\.00 GB.*MANYLABEL_CACHE.*float16"):
        _cache(model, table)
    assert not list(feature_cache.cache_folder().rglob("*.bin"))
    monkeypatch.undo()
    told: list[Announcement] = []
    _cache(model, table, announce=told.append)
    assert told[0].bytes == len(table) * 256 * 4


@pytest.mark.parametrize("change", ["weights", "preprocess", "images", "dtype"])
def test_anything_that_changes_the_features_changes_the_key(
    model: Model, table: Table, tiny_settings: list[str], change: str, photos: Path
) -> None:
    before = feature_cache.cache_key(model, table, model.backbone.preprocess, "float32")
    preprocess, dtype = model.backbone.preprocess, "float32"
    if change == "weights":
        with torch.no_grad():
            next(model.backbone.parameters()).add_(1e-3)
    elif change == "preprocess":
        preprocess = replace(preprocess, resize="pad")
    elif change == "images":
        os.utime(photos / "images" / "photo000.jpg", (1, 1))
    else:
        dtype = "float16"
    assert feature_cache.cache_key(model, table, preprocess, dtype) != before


def test_an_interrupted_extraction_goes_on_where_it_was(
    model: Model, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_cache, "BATCH", 8)
    monkeypatch.setattr(feature_cache, "SAVE_EVERY", 1)
    stop = StopRequest()

    def interrupt(count: int) -> None:
        interrupt.seen += count  # type: ignore[attr-defined]
        if interrupt.seen >= 16:  # type: ignore[attr-defined]
            stop.signal = 15

    interrupt.seen = 0  # type: ignore[attr-defined]
    with pytest.raises(Stopped, match="features of 16 of 48 images"):
        _cache(model, table, stop=stop, advance=interrupt)
    seen = _count_forwards(model)
    resumed = _cache(model, table)
    assert sum(seen) == 32
    key = resumed.folder
    first = np.array(resumed.arrays["final"])
    shutil.rmtree(key)
    assert np.array_equal(np.array(_cache(model, table).arrays["final"]), first)


def test_damaged_files_are_computed_again(model: Model, table: Table) -> None:
    cache = _cache(model, table)
    good = np.array(cache.arrays["final"])
    with open(cache.folder / "final.bin", "r+b") as file:
        file.truncate(100)
    assert np.array_equal(np.array(_cache(model, table).arrays["final"]), good)


def test_unreadable_images_are_remembered(model: Model, photos: Path) -> None:
    (photos / "images" / "photo004.jpg").write_bytes(b"")
    table = read_table(DataConfig(path=str(photos)))
    for _ in range(2):  # computed, then from disk
        cache = _cache(model, table)
        assert list(cache.bad) == [4]
        assert Placed(cache, np.arange(6)).usable(np.arange(6)).tolist() == [0, 1, 2, 3, 5]


def test_float16_halves_the_size_and_refuses_what_does_not_fit(model: Model, table: Table) -> None:
    full, half = _cache(model, table), _cache(model, table, dtype="float16")
    assert half.arrays["final"].nbytes * 2 == full.arrays["final"].nbytes
    rows = np.arange(10)
    assert torch.allclose(half.features(rows).final, full.features(rows).final, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        for parameter in list(model.backbone.parameters())[-2:]:
            parameter.mul_(1e9)
    with pytest.raises(CheckpointError, match="do not fit float16"):
        _cache(model, table, dtype="float16")


def test_facts_say_what_it_is(model: Model, table: Table) -> None:
    facts = json.loads((_cache(model, table).folder / "facts.json").read_text())
    assert facts["backbone"] == "test_efficientnet"
    assert facts["images"] == len(table)

"""Cached views: frozen training that still augments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from manylabel import run
from manylabel.cache import FeatureCache
from manylabel.cache.stage_file import StageFile
from manylabel.data.sampler import EpochBatches
from manylabel.error import ConfigError
from manylabel.model import TaskModel
from manylabel.training.feed import FeatureFeed, Placed

VIEWS = ["augment.flip=true", "augment.random_crop=0.5", "train.views=2", "train.epochs=2", "data.workers=0"]


@pytest.fixture
def cache(tmp_path: Path) -> Callable[..., FeatureCache]:
    def make(values: np.ndarray, bad: dict[int, str] | None = None) -> FeatureCache:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        file = StageFile.create(folder, "final", len(values), (1, 1, 1), "float16")
        file.write(np.arange(len(values)), torch.from_numpy(values).float().reshape(-1, 1, 1, 1))
        file.bad.update(bad or {})
        return FeatureCache({"final": file})

    return make


def test_each_epoch_shows_another_view_until_all_were_seen(cache: Callable[..., FeatureCache]) -> None:
    """Rows 2..7 of a table of ten are for training; a value tells its view (hundreds) and row."""
    rows = np.arange(2, 8)
    views = [Placed(cache(100 * v + rows), rows) for v in (1, 2)]
    feed = FeatureFeed(cache(np.arange(10)), EpochBatches(rows, 4, shuffle=True, seed=3), views)
    seen: dict[int, set[int]] = {int(row): set() for row in rows}
    for epoch in range(3):
        for batch in feed.batches(epoch):
            for row, value in zip(batch.rows.tolist(), batch.inputs.stages["final"].flatten().tolist(), strict=True):
                assert value % 100 == row
                seen[row].add(int(value // 100))
    assert all(ways == {0, 1, 2} for ways in seen.values())
    again = [batch.inputs.stages["final"] for batch in feed.batches(1)]
    assert all(torch.equal(a, b.inputs.stages["final"]) for a, b in zip(again, feed.batches(1), strict=True))


def test_an_image_that_is_unreadable_in_any_view_is_left_out(cache: Callable[..., FeatureCache]) -> None:
    rows = np.arange(2, 8)
    views = [Placed(cache(rows, {1: "broken"}), rows)]
    feed = FeatureFeed(cache(np.arange(10), {7: "broken"}), EpochBatches(rows, 4, shuffle=True), views)
    assert sorted(feed.order.rows.tolist()) == [2, 4, 5, 6]


def test_views_are_computed_once(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*tiny_settings, *VIEWS, "head.name=ml_decoder"]
    first = run.train(str(photos), out=tmp_path / "a", settings=settings)
    assert first.mAP is not None

    def touched(*_arguments: object) -> None:
        raise AssertionError("the backbone was used although its features are cached")

    monkeypatch.setattr(TaskModel, "features", touched)
    run.train(str(photos), out=tmp_path / "b", settings=settings)
    run.train(str(photos), out=tmp_path / "c", settings=[*settings, "train.seed=0", "head.groups=2"])
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in "ab"]
    assert [json.loads(x)["loss"] for x in lines[0]] == [json.loads(x)["loss"] for x in lines[1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.views=2"], "needs an augmentation"),
        ([*VIEWS, "augment.cutmix=0.3"], "cutmix pastes pixels"),
        ([*VIEWS, "backbone.freeze=full"], "with --full every epoch draws anew"),
        (["train.views=-1"], "train.views must be"),
    ],
)
def test_settings_that_contradict_views_are_refused(
    photos: Path, tmp_path: Path, tiny_settings: list[str], settings: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run.train(str(photos), out=tmp_path / "run", settings=[*tiny_settings, *settings])

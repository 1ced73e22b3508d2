"""Cached views: frozen training that still augments."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from manylabel import run
from manylabel.config import load_recipe, make_config
from manylabel.data.sampler import EpochBatches
from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.training.feature_cache import FeatureCache
from manylabel.training.feed import FeatureFeed, Placed

VIEWS = ["augment.flip=true", "augment.random_crop=0.5", "train.views=2", "train.epochs=2", "data.workers=0"]


def _cache(values: np.ndarray, bad: dict[int, str] | None = None) -> FeatureCache:
    return FeatureCache(Path(), {"final": values.reshape(-1, 1, 1, 1).astype(np.float16)}, bad or {})


def test_each_epoch_shows_another_view_until_all_were_seen() -> None:
    """Rows 2..7 of a table of ten are for training; a value tells its view (hundreds) and row."""
    rows = np.arange(2, 8)
    views = [Placed(_cache(100 * v + rows), rows) for v in (1, 2)]
    feed = FeatureFeed(_cache(np.arange(10)), EpochBatches(rows, 4, shuffle=True, seed=3), views)
    seen: dict[int, set[int]] = {int(row): set() for row in rows}
    for epoch in range(3):
        for batch in feed.batches(epoch):
            for row, value in zip(batch.rows.tolist(), batch.inputs.stages["final"].flatten().tolist(), strict=True):
                assert value % 100 == row
                seen[row].add(int(value // 100))
    assert all(ways == {0, 1, 2} for ways in seen.values())
    again = [batch.inputs.stages["final"] for batch in feed.batches(1)]
    assert all(torch.equal(a, b.inputs.stages["final"]) for a, b in zip(again, feed.batches(1), strict=True))


def test_an_image_that_is_unreadable_in_any_view_is_left_out() -> None:
    rows = np.arange(2, 8)
    views = [Placed(_cache(rows, {1: "broken"}), rows)]
    feed = FeatureFeed(_cache(np.arange(10), {7: "broken"}), EpochBatches(rows, 4, shuffle=True), views)
    assert sorted(feed.order.rows.tolist()) == [2, 4, 5, 6]


def test_views_are_computed_once(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*tiny_settings, *VIEWS, "head.name=ml_decoder"]
    first = run.train(str(photos), out=tmp_path / "a", settings=settings)
    assert first.mAP is not None

    def touched(*_arguments: object) -> None:
        raise AssertionError("the backbone was used although its features are cached")

    monkeypatch.setattr(Model, "features", touched)
    run.train(str(photos), out=tmp_path / "b", settings=settings)
    run.train(str(photos), out=tmp_path / "c", settings=[*settings, "train.seed=0", "head.groups=2"])
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in "ab"]
    assert [json.loads(x)["loss"] for x in lines[0]] == [json.loads(x)["loss"] for x in lines[1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.views=2"], "needs an augmentation"),
        ([*VIEWS, "augment.mixup=0.3"], "without augment.mixup"),
        ([*VIEWS, "backbone.freeze=full"], "frozen backbone"),
        ([*VIEWS, "train.cache=off"], "frozen backbone and its cache"),
        (["train.views=-1"], "train.views must be"),
    ],
)
def test_settings_that_contradict_views_are_refused(
    photos: Path, tmp_path: Path, tiny_settings: list[str], settings: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run.train(str(photos), out=tmp_path / "run", settings=[*tiny_settings, *settings])


def test_a_head_by_name_brings_the_settings_that_suit_it(photos: Path, tmp_path: Path) -> None:
    from manylabel.run.training_run import suited_recipe

    assert suited_recipe([], {"head": {"name": "ml_decoder"}}) == load_recipe("ml-decoder-laptop")
    assert suited_recipe(["head.name=query2label"], {}) == load_recipe("query2label-laptop")
    one = suited_recipe([], {"head": "ml_decoder", "task": "single_label"})  # its loss is for many labels
    assert one is not None
    assert make_config(one, [], head="ml_decoder", task="single_label").loss.name == "cross_entropy"
    assert suited_recipe([], {"head": "linear"}) is None
    assert suited_recipe([], {}) is None
    assert suited_recipe(["backbone.freeze=full"], {"head": "ml_decoder"}) is None
    assert suited_recipe(["train.cache=off"], {"head": "ml_decoder"}) is None

"""The loop that papers train ImageNet with, on a few photos: LAMB, copies of images, stochastic depth, plain colours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import manylabel, settings
from whole_run import check_whole_run

SETTINGS = [
    *(
        "optimiser.name=lamb",
        "augment.repeats=3",
        "augment.flip=true",
        "augment.cutout=0.5",
        "augment.cutout_first=true",
    ),
    *("backbone.freeze=full", "backbone.drop_path=0.1", "backbone.normalise=unit", "backbone.batch_norm=moving"),
    *("head.name=ml_decoder", "head.dim=16", "head.heads=4", "head.hidden=16", "head.self_attention=true"),
    *("head.query=learnable", "train.ema=0.9", "train.ema_ramp=false", "train.views=0", "train.cache=off"),
]


def test_it_trains_stores_and_predicts(photos: Path, tmp_path: Path) -> None:
    check_whole_run(photos, tmp_path / "run", *SETTINGS)
    stored = json.loads((tmp_path / "run" / "bundle" / "preprocess.json").read_text(encoding="utf-8"))
    assert (stored["mean"], stored["std"]) == ([0.0] * 3, [1.0] * 3)


@pytest.mark.parametrize("change", ["train.cache=auto", "augment.flip=false"])
def test_copies_that_would_be_the_same_are_refused(
    photos: Path, tmp_path: Path, tiny_settings: list[str], change: str
) -> None:
    frozen = ["backbone.freeze=frozen", "train.views=2"] if "cache" in change else []
    plain = ["augment.cutout=0", "augment.repeats=3", "augment.flip=true"]
    asked = [*tiny_settings, *plain, "train.views=0", "augment.random_crop=0", "augment.colour=0", change, *frozen]
    refused = manylabel("train", photos, "--recipe", "demo", "--out", tmp_path / "run", *settings(*asked))
    assert refused.returncode == 2, refused.stderr
    assert "augment.repeats takes copies of an image that are varied each time" in refused.stderr

"""What the loop promises: it learns, it stops when it must, and its options mean what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import write_csv, write_labelled_photos

from manylabel import run
from manylabel.bundle import load_bundle
from manylabel.error import TrainingError


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return write_labelled_photos(tmp_path / "many", 160)


def _train(data: Path, out: Path, tiny: list[str], *settings: str) -> run.RunResult:
    return run.train(str(data), out=out, settings=[*tiny, "data.workers=0", *settings])


def _weights(out: Path) -> torch.Tensor:
    return load_bundle(out).only.model.head.classifier.weight.detach()


def test_a_frozen_and_a_fully_trained_model_learn(many: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    chance = (
        np.mean([row["support"] for row in _train(many, tmp_path / "0", tiny_settings).results["labels"]]) / 32 * 100
    )
    frozen = _train(
        many, tmp_path / "frozen", tiny_settings, "train.epochs=30", "train.batch_size=16", "optimiser.lr=0.03"
    )
    full = _train(
        many, tmp_path / "full", tiny_settings, "backbone.freeze=full", "optimiser.backbone_rate=1",
        "train.epochs=12", "train.batch_size=16", "augment.flip=true", "train.ema=0.9", "train.clip=1",
    )  # fmt: skip
    assert frozen.mAP is not None
    assert full.mAP is not None
    assert frozen.mAP > chance + 15
    assert full.mAP > chance + 25


def test_a_loss_that_is_not_finite_names_the_batch(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    with pytest.raises(
        TrainingError, match=r"(epoch 1, batch \d+ of 5 \(photo\d+.jpg.*and \d more\)|not numbers).*checkpoint"
    ):
        _train(photos, tmp_path / "run", tiny_settings, "optimiser.lr=1e38", "optimiser.name=sgd", "train.batch_size=8")


def test_mixed_precision_trains_and_is_not_inherited(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    half = _train(photos, tmp_path / "half", tiny_settings, "train.amp=bf16", "train.epochs=2", "train.cache=off")
    again, _ = run.evaluate(tmp_path / "half")
    whole = _train(photos, tmp_path / "whole", tiny_settings, "train.amp=no", "train.epochs=2", "train.cache=off")
    assert half.mAP is not None
    assert whole.mAP is not None
    assert again["mAP"] is not None
    assert not torch.equal(_weights(tmp_path / "half"), _weights(tmp_path / "whole"))


def test_accumulating_two_halves_is_one_whole_batch(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    """Everything known and a frozen backbone: the mean over two halves is the mean over the whole."""
    settings = ["train.epochs=1", "optimiser.name=sgd", "schedule.name=constant", "data.validation_share=0.5"]
    _train(photos, tmp_path / "a", tiny_settings, *settings, "train.batch_size=8")
    _train(photos, tmp_path / "b", tiny_settings, *settings, "train.batch_size=4", "train.accumulate=2")
    assert torch.allclose(_weights(tmp_path / "a"), _weights(tmp_path / "b"), atol=1e-6)


def test_a_label_that_is_always_unknown_is_never_taught(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    rows = [[f"photo{i:03d}.jpg", i % 2, "" if i < 36 else i % 3 // 2, "train" if i < 36 else "val"] for i in range(48)]
    write_csv(photos / "labels.csv", rows, ["file_name", "known", "hidden", "split"])  # type: ignore[arg-type]
    settings = ["train.epochs=3", "optimiser.name=sgd", "optimiser.weight_decay=0"]
    _train(photos, tmp_path / "long", tiny_settings, *settings, "train.keep=last")
    _train(photos, tmp_path / "short", tiny_settings, *settings[1:], "train.epochs=1", "train.keep=last")
    long, short = (
        load_bundle(tmp_path / "long").only.model.head.classifier,
        load_bundle(tmp_path / "short").only.model.head.classifier,
    )
    assert torch.equal(long.weight[1], short.weight[1])
    assert long.bias[1] == 0
    assert not torch.equal(long.weight[0], short.weight[0])


def test_the_best_epoch_is_kept_unless_the_last_is_wanted(
    photos: Path, tmp_path: Path, tiny_settings: list[str]
) -> None:
    settings = ["train.epochs=6", "optimiser.lr=0.5", "schedule.name=constant"]  # a rate that jumps about
    best = _train(photos, tmp_path / "best", tiny_settings, *settings)
    last = _train(photos, tmp_path / "last", tiny_settings, *settings, "train.keep=last")
    history = [json.loads(line)["mAP"] for line in (tmp_path / "best" / "metrics.jsonl").read_text().splitlines()]
    assert best.mAP == pytest.approx(max(history), abs=1e-3)
    assert last.mAP == pytest.approx(history[-1], abs=1e-3)


def test_all_losses_train(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    for name in ("bce", "focal", "asl", "soft_margin"):
        settings = [f"loss.name={name}", "loss.positive_weight=sqrt", "loss.label_smoothing=0.05", "train.epochs=3"]
        _train(photos, tmp_path / name, tiny_settings, *settings)
        losses = [json.loads(line)["loss"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        assert losses[-1] < losses[0]

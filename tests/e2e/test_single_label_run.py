"""One label per image, from a folder for each label to a judged classifier."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import manylabel, settings

import manylabel as ml

SLOW = [pytest.param(loss, marks=pytest.mark.slow) for loss in ("asl_single", "bce")]


@pytest.mark.parametrize("loss", [None, *SLOW])
def test_train_judge_predict(colours: Path, tmp_path: Path, loss: str | None) -> None:
    """With real weights: ImageNet knows colours."""
    wanted = ["backbone.image_size=64", "train.epochs=30", "data.workers=0", *([f"loss.name={loss}"] if loss else [])]
    run = ml.train(colours, out=tmp_path / "run", kind="single_label", settings=wanted)
    assert run.results["top1"] >= 70  # 25 by guessing
    assert run.results["top5"] == 100
    assert run.results["model"]["task"] == "single_label"
    again, _ = ml.evaluate(run.folder)
    assert again["top1"] == pytest.approx(run.results["top1"])
    assert "Top 1" in (run.folder / "report.html").read_text(encoding="utf-8")

    predictor = ml.Predictor.load(run.folder)
    (prediction,) = predictor.predict(colours / "red" / "00.png")
    assert len(prediction.present) == 1
    assert prediction.present[0] == prediction.labels[0].label
    if loss != "bce":
        assert sum(entry.score for entry in prediction.labels) == pytest.approx(1, abs=1e-5)


def test_the_command_line(colours: Path, photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    tiny = settings(*tiny_settings, "train.epochs=2", "data.workers=0")
    done = manylabel("train", colours, "--kind", "single_label", "--out", tmp_path / "run", *tiny)
    assert done.returncode == 0, done.stderr
    assert "top-1 accuracy" in done.stdout
    many = manylabel("train", photos, "--kind", "single_label", "--out", tmp_path / "no", *tiny)
    assert many.returncode == 2
    assert "several labels" in many.stderr
    typo = manylabel("train", photos, "--kind", "singel_label", "--out", tmp_path / "no", *tiny)
    assert typo.returncode == 2
    assert "did you mean 'single_label'" in typo.stderr
    old = manylabel("train", colours, "--task", "single_label", "--out", tmp_path / "no", *tiny)
    assert old.returncode == 2
    assert "--task names one task of a model; what a task is says --kind: --kind single_label" in old.stderr
    assert not (tmp_path / "no").exists()
    hint = manylabel("train", colours, "--out", tmp_path / "many", *tiny)
    assert "every image has exactly one label: --kind single_label" in hint.stderr

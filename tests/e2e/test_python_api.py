"""Three lines of Python, as the README has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import manylabel as ml


def test_three_lines(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    run = ml.train(photos, out=tmp_path / "run", settings=[*tiny_settings, "train.epochs=1", "data.workers=0"])
    predictor = ml.Predictor.load(run.folder)
    path = photos / "images" / "photo000.jpg"
    (prediction,) = predictor.predict(path)
    assert run.mAP is not None
    assert [entry.label for entry in prediction.labels if entry.above] == prediction.present
    assert set(predictor.labels) == {"red", "green", "blue", "white"}

    image = Image.open(path).convert("RGB")
    answers = predictor.predict([path.read_bytes(), image, np.asarray(image)])
    for answer in answers:
        assert [e.label for e in answer.labels] == [e.label for e in prediction.labels]
        assert [e.score for e in answer.labels] == pytest.approx([e.score for e in prediction.labels], abs=1e-5)
    (broken,) = predictor.predict([b"nonsense"])
    assert broken.error is not None


def test_sections_as_keywords(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    run = ml.train(
        {"path": str(photos), "workers": 0},
        out=tmp_path / "run",
        head="linear",
        loss={"name": "asl", "clip": 0.0},
        train={"epochs": 1},
        settings=tiny_settings,
    )
    results, details = ml.evaluate(run.folder)
    assert results["model"]["loss"] == "asl"
    assert results["mAP"] == pytest.approx(run.mAP, abs=1e-3)
    assert len(details["history"]) == 1

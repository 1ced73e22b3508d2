"""Three lines of Python, as the README has them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from same_scores import check_bundle_scores_as_its_run

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
    transparent = Image.new("RGBA", (64, 64), (10, 20, 30, 0))
    transparent.save(tmp_path / "clear.png")
    one, other = predictor.predict([tmp_path / "clear.png", transparent])
    assert [e.score for e in one.labels] == pytest.approx([e.score for e in other.labels], abs=1e-6)
    assert len(predictor.predict(io.BytesIO(path.read_bytes()))) == 1
    (broken,) = predictor.predict([b"nonsense"])
    assert broken.error is not None


def test_a_model_is_never_judged_on_what_it_was_trained_on_by_accident(
    trained: Path, photos: Path, tmp_path: Path
) -> None:
    held_out = json.loads((trained / "results.json").read_text())["data"]["images"]
    assert held_out < 48
    for path in (trained, trained / "bundle"):
        assert ml.evaluate(path)[0]["data"]["images"] == held_out
    moved = tmp_path / "elsewhere"
    shutil.copytree(trained / "bundle", moved)
    with pytest.raises(ml.ManylabelError, match="what this model was trained on is not known here"):
        ml.evaluate(moved)
    assert str(trained.parent) not in (moved / "config.yaml").read_text()  # a bundle does not tell where the data was
    other = tmp_path / "other"
    shutil.copytree(photos, other)
    assert ml.evaluate(moved, data=str(other))[0]["data"] == {
        "name": "other",
        "split": "all",
        "images": 48,
        "bad_images": 0,
    }


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
    check_bundle_scores_as_its_run(run, photos)
    assert len(details["history"]) == 1


def test_data_from_python(photos: Path) -> None:
    table = ml.load_data(photos, validation_share=0.3)
    assert len(table) == 48
    assert table.labels.names == ("blue", "green", "red", "white")
    with pytest.raises(ml.ManylabelError, match="did you mean.*missing"):
        ml.load_data(photos, mising="drop")


def test_a_size_that_the_weights_did_not_take_is_not_asked_of_the_bundle(
    photos: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A transformer's weights fix its size: recipe laptop asks for a larger one, falls back, and the bundle remembers."""
    import timm
    import torch

    torch.manual_seed(0)
    weights = tmp_path / "vit.pth"
    torch.save(timm.create_model("test_vit").state_dict(), weights)
    settings = [
        "backbone.name=test_vit",
        f"backbone.weights={weights}",
        "train.epochs=1",
        "train.views=0",
        "data.workers=0",
    ]
    run = ml.train(photos, out=tmp_path / "run", settings=settings)
    if "does not take" not in capfd.readouterr().err:
        pytest.skip("this version of timm resamples positions while it loads weights")
    assert len(ml.Predictor.load(run.folder).predict(photos / "images" / "photo000.jpg")) == 1


def test_what_is_wrong_in_any_size_is_not_said_to_be_the_size(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ml.ManylabelError, match="no stage 'stage9'"):
        ml.train(photos, out=tmp_path / "a", settings=["backbone.trained_after=stage9"])

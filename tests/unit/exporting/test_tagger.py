"""The folder of a tagger: tags in the order of the model, categories from the hierarchy, pixels as the bundle has them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from explained import bundle
from net.kept_runs import ARCHIVE, PHOTOS, unpack

import manylabel as ml
from manylabel.error import ConfigError, ManylabelError
from manylabel.exporting.tagger import category_of, check_tagger
from manylabel.hierarchy import Hierarchy, LabelFacts


def test_a_folder_that_says_what_the_run_says(tmp_path: Path) -> None:
    run = unpack(ARCHIVE, tmp_path) / "runs" / "hierarchy"
    found = ml.export(run, tmp_path / "tagger", to="tagger")
    assert found.file == tmp_path / "tagger" / "model.onnx"
    theirs = ml.load_bundle(run)
    with open(tmp_path / "tagger" / "selected_tags.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == list(theirs.labels)
    assert [float(row["best_threshold"]) for row in rows] == theirs.thresholds.tolist()
    categories = {
        one["category"]: one["name"] for one in json.loads((tmp_path / "tagger" / "categories.json").read_text())
    }
    assert [categories[int(row["category"])] for row in rows] == [
        category_of(name, theirs.only.hierarchy) for name in theirs.labels
    ]
    session = onnxruntime.InferenceSession(str(found.file))
    assert [one.name for one in session.get_inputs()] == ["input"]
    prediction, logits, embedding = session.run(None, {"input": np.zeros((1, 3, 64, 64), np.float32)})
    assert prediction == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-6)
    assert embedding.ndim == 2
    for ours, meant in zip(
        ml.Predictor.load(found.file).predict(sorted(PHOTOS.iterdir())),
        ml.Predictor.load(run).predict(sorted(PHOTOS.iterdir())),
        strict=True,
    ):
        assert set(ours.present) == set(meant.present)
    with pytest.raises(ManylabelError, match="replace it with --overwrite"):
        ml.export(run, tmp_path / "tagger", to="tagger")
    ml.export(run, tmp_path / "tagger", to="tagger", overwrite=True)


def test_the_category_is_the_top_of_the_hierarchy() -> None:
    known = {"cat": ("mammal",), "mammal": ("animal",), "animal": (), "stone": ()}
    hierarchy = Hierarchy({name: LabelFacts(parents) for name, parents in known.items()})
    assert [category_of(name, hierarchy) for name in known] == ["animal", "animal", "animal", "general"]
    assert category_of("cat", None) == "general"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("backbone.resize=crop",), "cannot prepare pixels as backbone.resize=crop does"),
        (("kind=single_label", "loss.name=cross_entropy"), "gives one label per image"),
    ],
)
def test_what_front_ends_cannot_do(settings: tuple[str, ...], said: str) -> None:
    given = bundle("head.name=linear", *settings)
    with pytest.raises(ConfigError, match=said):
        check_tagger({"labels": given})
    with pytest.raises(ConfigError, match="one task; choose one with --task: a, b"):
        check_tagger({"a": replace(given), "b": given})

"""Zero-shot from training to labels that nobody trained: the files, the figures, the errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import manylabel, settings
from same_scores import check_bundle_scores_as_its_run

import manylabel as ml

WORDS = """red 1 0 0 1
green 0 1 0 1
blue 0 0 1 1
white 1 1 1 1
black -1 -1 -1 1
pink 2 1 1 1
"""
HEAD = ["head.name=ml_decoder", "head.query=text", "head.dim=32", "head.hidden=32", "text.name=file", "head.heads=4"]
LOOP = [
    "train.epochs=2",
    "train.views=0",
    "augment.flip=false",
    "augment.random_crop=0",
    "augment.colour=0",
    "data.workers=0",
]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    return path


@pytest.fixture
def zero_shot(words: Path, tiny_settings: list[str]) -> list[str]:
    return [
        *tiny_settings,
        *HEAD,
        *LOOP,
        "head.pooling=shared",
        "head.random_queries=2",
        "head.query_noise=0.1",
        f"text.path={words}",
        "zero_shot.unseen=white",
        "zero_shot.in_training=hide",
    ]


def test_from_words_to_labels_never_trained(photos: Path, tmp_path: Path, words: Path, zero_shot: list[str]) -> None:
    out = tmp_path / "run"
    run = ml.train(photos, out=out, settings=zero_shot)
    figures = run.results["zero_shot"]
    assert (figures["unseen_labels"], figures["seen_labels"]) == (1, 3)
    assert figures["zsl"]["mAP"] is not None
    assert set(figures["baselines"]) == {"prevalence", "nearest_seen_label"}
    assert [row["name"] for row in run.results["labels"] if row["unseen"]] == ["white"]
    assert "Zero-shot" in (out / "report.html").read_text(encoding="utf-8")

    again, _ = ml.evaluate(out)  # from the pixels and the stored bundle
    assert again["zero_shot"]["zsl"]["mAP"] == pytest.approx(figures["zsl"]["mAP"], abs=1e-3)
    stored = json.loads((out / "bundle" / "labels.json").read_text())
    assert stored["text_source"] == "word vectors of words.txt"
    card = (out / "bundle" / "README.md").read_text(encoding="utf-8")
    assert "words.txt" in card
    assert "Never told in training: white" in card
    assert str(tmp_path) not in (out / "bundle" / "config.yaml").read_text()

    predictor = ml.Predictor.load(out)
    image = photos / "images" / "photo000.jpg"
    other = predictor.for_labels(["pink", "red", "black"], text_file=str(words))
    known = {entry.label: entry for entry in predictor.predict(image)[0].labels}
    asked = {entry.label: entry for entry in other.predict(image)[0].labels}
    assert set(asked) == {"pink", "red", "black"}
    assert asked["red"].score == pytest.approx(known["red"].score, abs=1e-5)
    assert asked["red"].threshold == known["red"].threshold
    assert asked["pink"].threshold == pytest.approx(np.median(predictor.bundle.thresholds))
    assert set(predictor.labels) == {"red", "green", "blue", "white"}  # the predictor itself is as it was
    with pytest.raises(ml.ManylabelError, match=r"say where that file is: --vectors …/words.txt"):
        predictor.for_labels(["pink"])
    with pytest.raises(ml.ManylabelError, match="nearest words: pink"):
        predictor.for_labels(["pimk"], text_file=str(words))
    with pytest.raises(ml.ManylabelError, match=r"'pink' and 'Pink' are the same"):
        predictor.for_labels(["pink", "Pink"], text_file=str(words))
    given = predictor.for_labels(["anything"], vectors=np.ones((1, 4)))
    assert given.predict(image)[0].labels[0].label == "anything"


@pytest.mark.parametrize("grouping", ["order", "random", "cooccurrence", "text"])
def test_seen_labels_score_the_same_beside_any_others(
    photos: Path, tmp_path: Path, words: Path, zero_shot: list[str], grouping: str
) -> None:
    """With group queries, a label's companions are those of training, whoever is asked for."""
    plain = [setting for setting in zero_shot if "random_queries" not in setting and "pooling" not in setting]
    options = ["head.groups=2", "head.pooling=text", f"head.grouping={grouping}"]
    run = ml.train(photos, out=tmp_path / "run", settings=[*plain, *options])
    check_bundle_scores_as_its_run(run, photos)
    predictor, image = ml.Predictor.load(run.folder), photos / "images" / "photo000.jpg"
    known = {entry.label: entry.score for entry in predictor.predict(image)[0].labels}
    for asked in (["red"], ["pink", "blue", "black"], ["black", "white", "green", "pink", "red"]):
        found = {
            entry.label: entry.score
            for entry in predictor.for_labels(asked, text_file=str(words)).predict(image)[0].labels
        }
        assert set(found) == set(asked)
        seen = [label for label in asked if label in ("red", "green", "blue")]
        assert [found[label] for label in seen] == pytest.approx([known[label] for label in seen], abs=1e-5)
    alone = predictor.for_labels(["white"], text_file=str(words)).predict(image)[0].labels  # ZSL
    assert alone[0].score == pytest.approx(known["white"], abs=1e-5)


def test_other_vectors_than_those_of_the_training_are_refused(
    photos: Path, tmp_path: Path, zero_shot: list[str]
) -> None:
    run = ml.train(photos, out=tmp_path / "run", settings=zero_shot)
    predictor = ml.Predictor.load(run.folder)
    wide, other = tmp_path / "wide.txt", tmp_path / "other.txt"
    wide.write_text("".join(f"{line} 1\n" for line in WORDS.splitlines()))
    other.write_text(WORDS.replace("red 1 0 0 1", "red 9 1 0 1"))
    with pytest.raises(ml.ManylabelError, match="vectors of 5 numbers, this model was trained with 4"):
        predictor.for_labels(["pink"], text_file=str(wide))
    with pytest.raises(ml.ManylabelError, match="says something else about 'red'"):
        predictor.for_labels(["pink"], text_file=str(other))


def test_the_command_line(photos: Path, tmp_path: Path, words: Path, zero_shot: list[str]) -> None:
    out = tmp_path / "run"
    trained = manylabel("train", photos, "--out", out, *settings(*zero_shot))
    assert trained.returncode == 0, trained.stderr
    assert "mAP (ZSL, 1 unseen labels)" in trained.stdout
    assert "unseen mAP by guessing" in trained.stdout
    image = photos / "images" / "photo000.jpg"
    said = manylabel("predict", out, image, "--labels", "pink, black", "--vectors", words, "--json")
    assert said.returncode == 0, said.stderr
    assert {entry["label"] for entry in json.loads(said.stdout)[0]["labels"]} == {"pink", "black"}
    wrong = manylabel("predict", out, image, "--labels", "pimk", "--vectors", words)
    assert wrong.returncode == 2
    assert "'pimk': nearest words: pink" in wrong.stderr

    shown = manylabel("train", photos, "--out", tmp_path / "no", *settings(*zero_shot, "zero_shot.in_training=error"))
    assert shown.returncode == 2
    assert "shows the unseen label 'white'" in shown.stderr
    linear = manylabel(
        "train",
        photos,
        "--out",
        tmp_path / "no",
        *settings(*zero_shot[:3], "zero_shot.unseen=white", "zero_shot.in_training=hide"),
    )
    assert linear.returncode == 2
    assert "the linear head cannot recognise labels that training never tells" in linear.stderr


def test_a_model_with_labels_of_its_own_says_so(trained: Path) -> None:
    with pytest.raises(ml.ManylabelError, match="knows its own 4 labels only"):
        ml.Predictor.load(trained).for_labels(["pink"])


@pytest.mark.parametrize("grouping", ["cooccurrence", "text"])
def test_groups_come_back_from_a_bundle(
    photos: Path, tmp_path: Path, words: Path, tiny_settings: list[str], grouping: str
) -> None:
    options = [
        "head.name=ml_decoder",
        "head.groups=2",
        f"head.grouping={grouping}",
        "text.name=file",
        f"text.path={words}",
    ]
    run = ml.train(photos, out=tmp_path / "run", settings=[*tiny_settings, *options, *LOOP])
    check_bundle_scores_as_its_run(run, photos)

"""A label that only val has is judged apart and named: no mean is drawn down by what a model could never learn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import TINY, manylabel, settings
from conftest import write_csv
from small_tasks import SMALL

import manylabel as ml
from manylabel.error import BundleError
from manylabel.evaluation import judge
from manylabel.labels import LabelSpace
from manylabel.storage.atomic import sha256, write_json
from manylabel.task import SingleLabel

RARE = "unicorn"
ASKED = [*TINY, "train.epochs=2", "data.workers=0"]


def _with_a_label_that_only_val_has(photos: Path) -> Path:
    rows = []
    for i, line in enumerate((photos / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]):
        name, labels = line.split(",")
        part = "val" if i >= 30 else "train"
        rows.append([name, "|".join(filter(None, [labels, RARE if i in (31, 40, 44) else ""])), part])
    write_csv(photos / "labels.csv", rows, ["file_name", "labels", "split"])
    return photos


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _note(results: dict[str, Any]) -> str:
    return next(note for note in results["notes"] if "no training image" in note)


def _check(results: dict[str, Any]) -> None:
    """The label has its own row and note, and counts in no mean."""
    rows = {row["name"]: row for row in results["labels"]}
    assert [name for name, row in rows.items() if row.get("never_trained")] == [RARE]
    assert rows[RARE]["support"] == 3
    assert rows[RARE]["ap"] is not None, "how the model does on it is told all the same"
    others = [row["ap"] for name, row in rows.items() if name != RARE]
    assert results["mAP"] == pytest.approx(np.mean(others), abs=1e-3)
    assert (results["labels_scored"], results["labels_total"]) == (4, 5)
    assert f"{RARE} (AP {rows[RARE]['ap']:.1f}, 3 images)" in _note(results)


def test_a_label_that_only_val_has_is_shown_apart_and_named(photos: Path, tmp_path: Path) -> None:
    data, run = _with_a_label_that_only_val_has(photos), tmp_path / "run"
    answer = manylabel("train", data, "--out", run, *settings(*ASKED))
    assert answer.returncode == 0, answer.stderr
    results = _json(run / "results.json")
    _check(results)
    assert f"the model cannot know them; they count in no other figure: {RARE}" in answer.stdout
    last = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    epochs = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert results["mAP"] in [pytest.approx(json.loads(row)["mAP"], abs=1e-3) for row in epochs], last
    page = (run / "report.html").read_text(encoding="utf-8")
    assert f"<bdi>{RARE}</bdi>" in page[page.index("<h2>Never trained</h2>") :]
    assert '"name":["blue","green","red","white"]' in page, "the table and the charts are of the labels that count"
    judged = manylabel("evaluate", run / "bundle", "--data", data, "--split", "val", "--json", tmp_path / "again.json")
    assert judged.returncode == 0, judged.stderr
    _check(_json(tmp_path / "again.json"))
    card = (run / "bundle" / "README.md").read_text(encoding="utf-8")
    assert RARE not in card[card.index("Weakest labels") : card.index("## What to mind")]


def test_a_comparison_leaves_it_out_and_names_it(photos: Path, tmp_path: Path) -> None:
    data = _with_a_label_that_only_val_has(photos)
    for name, head in (("a", "head.attention=0.5"), ("b", "head.attention=0.1")):
        ml.train(str(data), out=tmp_path / name, settings=[*ASKED, head])
    asked = ("--out", tmp_path / "out", "--resamples", "100", "--name", "A", "--name", "B")
    answer = manylabel("compare", tmp_path / "a", tmp_path / "b", *asked)
    assert answer.returncode == 0, answer.stderr
    found = _json(tmp_path / "out" / "comparison.json")
    row = next(row for row in found["differences"][0]["labels"] if row["name"] == RARE)
    assert (row["change"], row["low"]) == (None, None)
    a, b = (method["mAP"] for method in found["methods"])
    assert found["differences"][0]["mAP"]["change"] == pytest.approx(b - a, abs=1e-3)
    assert f"A: 1 labels had no training image and are not compared: {RARE}" in answer.stdout
    assert f"B: 1 labels had no training image and are not compared: {RARE}" in (
        tmp_path / "out" / "comparison.html"
    ).read_text(encoding="utf-8")


def test_a_bundle_that_does_not_tell_is_judged_as_it_was(photos: Path, tmp_path: Path) -> None:
    data, run = _with_a_label_that_only_val_has(photos), tmp_path / "run"
    ml.train(str(data), out=run, settings=ASKED)
    stored = _json(run / "bundle" / "labels.json")
    assert (
        stored["training_images"][stored["labels"].index(next(r for r in stored["labels"] if r["name"] == RARE))] == 0
    )

    def write(counts: Any) -> None:
        told = {key: value for key, value in stored.items() if key != "training_images"}
        write_json(run / "bundle" / "labels.json", told if counts is None else {**told, "training_images": counts})
        sums = _json(run / "bundle" / "checksums.json")
        sums["sha256"]["labels.json"] = sha256(run / "bundle" / "labels.json")
        write_json(run / "bundle" / "checksums.json", sums)

    write(None)
    results, _ = ml.evaluate(run)
    assert results["labels_scored"] == 5
    assert not any("never_trained" in row for row in results["labels"])
    for wrong in ([1, 2], [1, 2, 3, 4, -1], [1, 2, 3, 4, 0.5], [1, 2, 3, 4, True], "12345", {"a": 1}):
        write(wrong)
        with pytest.raises(BundleError, match="training_images must be (5 whole numbers|a list)"):
            ml.evaluate(run)


def test_where_every_label_was_trained_nothing_changes_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    matrix = (rng.random((200, 6)) < 0.2).astype(np.int8)
    scores = rng.random((200, 6)).astype(np.float32)
    labels = LabelSpace(tuple("abcdef"))
    for here in (True, False):
        told = [
            judge(scores, matrix, labels, np.full(6, 0.5), fitted_here=here, training_images=counts)
            for counts in (None, np.array([1, 2, 3, 4, 5, 6]))
        ]
        assert told[0] == told[1]


def test_figures_are_those_of_the_other_labels_alone() -> None:
    rng = np.random.default_rng(1)
    matrix = (rng.random((300, 5)) < 0.3).astype(np.int8)
    scores = rng.random((300, 5)).astype(np.float32)
    counts = np.array([9, 0, 9, 9, 0])
    both = judge(scores, matrix, LabelSpace(tuple("abcde")), np.full(5, 0.4), fitted_here=False, training_images=counts)
    kept = [0, 2, 3]
    alone = judge(scores[:, kept], matrix[:, kept], LabelSpace(tuple("acd")), np.full(3, 0.4), fitted_here=False)
    for name in ("mAP", "mAP_interpolated", "CF1", "OF1", "top3", "at_thresholds", "calibration_error"):
        assert both[name] == alone[name], name
    assert both["label_calibration_error"] == alone["label_calibration_error"]
    assert both["f1_at"]["3"] == alone["f1_at"]["3"]
    assert "b (AP" in _note(both)
    assert "e (AP" in _note(both)


def test_an_image_whose_one_label_was_never_trained_is_still_a_miss() -> None:
    """Top-1 is a share of images, no mean over labels."""
    matrix, scores = np.eye(3, dtype=np.int8)[[0, 0, 1, 2]], np.full((4, 3), 0.1, np.float32)
    scores[:, 0] = 0.8
    one = SingleLabel()
    figures = judge(
        scores,
        matrix,
        LabelSpace(("a", "b", "c")),
        np.zeros(3),
        fitted_here=False,
        task=one,
        training_images=np.array([5, 5, 0]),
    )
    assert figures["top1"] == 50.0
    assert figures["labels_scored"] == 2


def test_unseen_labels_keep_their_own_figures() -> None:
    rng = np.random.default_rng(2)
    matrix = (rng.random((100, 4)) < 0.4).astype(np.int8)
    scores = rng.random((100, 4)).astype(np.float32)
    given: dict[str, Any] = {"unseen": np.array([False, False, True, True]), "fitted_here": False}
    labels, cuts = LabelSpace(tuple("abcd")), np.full(4, 0.5)
    assert judge(scores, matrix, labels, cuts, **given) == judge(
        scores, matrix, labels, cuts, training_images=np.array([3, 3, 0, 0]), **given
    )


def test_it_is_shown_apart_for_a_task_among_others(photos: Path, tmp_path: Path) -> None:
    data, run = _with_a_label_that_only_val_has(photos), tmp_path / "run"
    tasks = {**SMALL["tasks"], "labels": {**SMALL["tasks"]["labels"], "data": {"path": str(data), "workers": 0}}}
    results = ml.train(out=run, recipe={**SMALL, "tasks": tasks, "train": {**SMALL["train"], "steps": 2}}).results
    (apart,) = results["tasks"]["labels"]["never_trained"]
    assert (apart["name"], apart["support"]) == (RARE, 3)
    assert f"{RARE} (AP {apart['ap']:.1f}, 3 images)" in _note(results["tasks"]["labels"])
    assert results["tasks"]["objects"]["never_trained"] == []
    answer = manylabel("evaluate", run, "--task", "labels", "--json", tmp_path / "again.json")
    assert answer.returncode == 0, answer.stderr
    again = _json(tmp_path / "again.json")["tasks"]["labels"]
    assert again["never_trained"][0]["name"] == RARE
    assert again["figures"]["mAP"] == pytest.approx(results["tasks"]["labels"]["figures"]["mAP"], abs=1e-3)
    assert f"labels: {_note(again)}"[:60] in answer.stdout
    shutil.copytree(run, tmp_path / "two")
    settings_of_two = (tmp_path / "two" / "config.yaml").read_text(encoding="utf-8").replace("steps: 2", "steps: 3")
    (tmp_path / "two" / "config.yaml").write_text(settings_of_two, encoding="utf-8")
    compared = manylabel("compare", run, tmp_path / "two", "--out", tmp_path / "out")
    assert compared.returncode == 0, compared.stderr
    assert f"1 labels had no training image and are not compared: labels {RARE}" in compared.stdout
    assert f"not compared: labels {RARE}" in (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    stored = run / "bundle" / "tasks" / "labels" / "labels.json"
    plain = _json(stored)
    assert plain["training_images"][[row["name"] for row in plain["labels"]].index(RARE)] == 0
    del plain["training_images"]
    write_json(stored, plain)
    sums = _json(run / "bundle" / "checksums.json")
    sums["sha256"]["tasks/labels/labels.json"] = sha256(stored)
    write_json(run / "bundle" / "checksums.json", sums)
    assert ml.evaluate(run, task="labels")[0]["tasks"]["labels"]["never_trained"] == []

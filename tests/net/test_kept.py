"""Files that an earlier version left are read, resumed and judged, and its models say the same of the same photos."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import manylabel
from golden_facts import leaves
from kept_runs import ARCHIVE, EXPECTED, KEPT, MEGABYTES, OTHER_LABELS, PHOTOS, unpack

import manylabel as ml
from manylabel.training.loop import Trainer

TOLD = json.loads(EXPECTED.read_text(encoding="utf-8"))
ONE_TASK: dict[str, Any] = TOLD["one task"]
NEAR = 1e-5  # scores, on any machine
PERCENT = 0.01  # figures
PERCENT_OF_OBJECTS = 0.5  # one box more or less among few is that much
PHOTO_FILES = sorted(PHOTOS.iterdir())


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("kept"))


def _done(*arguments: str | Path, cwd: Path | None = None) -> str:
    answer = manylabel(*arguments, cwd=cwd)
    assert answer.returncode == 0, answer.stderr
    return str(answer.stdout)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _same(found: Any, told: Any, near: float, *but: str) -> None:
    """Nothing that was told is gone, texts are the same and numbers near; what is new is no matter."""
    now = dict(leaves(found, ""))
    wrong = {}
    for where, value in leaves(told, ""):
        if any(part in where for part in but):
            continue
        if isinstance(value, float):
            same = isinstance(now.get(where), (int, float)) and now[where] == pytest.approx(value, abs=near)
        elif value in ([], {}):  # what was told nothing of may be told now
            same = any(place == where or place.startswith(f"{where}/") for place in now)
        else:
            same = now.get(where, "gone") == value
        if not same:
            wrong[where] = (value, now.get(where, "gone"))
    assert not wrong


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in KEPT.rglob("*") if path.is_file()) < MEGABYTES * 1e6


# --- bundles ------------------------------------------------------------------------------------------------------


def _check_scores(predictor: ml.Predictor, told: dict[str, dict[str, float]]) -> None:
    found = predictor.predict(PHOTO_FILES)
    assert {path.name for path in PHOTO_FILES} == set(told)
    for path, prediction in zip(PHOTO_FILES, found, strict=True):
        assert {one.label: one.score for one in prediction.labels} == pytest.approx(told[path.name], abs=NEAR, rel=0)


@pytest.mark.parametrize("name", ONE_TASK)
def test_photos_get_the_same_scores(kept: Path, name: str) -> None:
    predictor = ml.Predictor.load(kept / "runs" / name)
    _check_scores(predictor, ONE_TASK[name]["photos"])
    if "other labels" in ONE_TASK[name]:
        other = predictor.for_labels(OTHER_LABELS, text_file=str(kept / "words.txt"))
        _check_scores(other, ONE_TASK[name]["other labels"])


@pytest.mark.parametrize("name", ONE_TASK)
def test_bundles_have_their_labels_and_thresholds(kept: Path, name: str) -> None:
    bundle = ml.load_bundle(kept / "runs" / name / "bundle")
    assert list(bundle.labels) == ONE_TASK[name]["labels"]
    assert bundle.thresholds.tolist() == ONE_TASK[name]["thresholds"]


def test_labels_of_several_tasks_get_the_same_scores(kept: Path) -> None:
    told = TOLD["several tasks"]["tasks"]["labels"]
    found = ml.Predictor.load(kept / "runs" / "tasks").predict(PHOTO_FILES, "labels")
    for path, prediction in zip(PHOTO_FILES, found, strict=True):
        for one in prediction.labels:
            assert [one.score, one.threshold] == pytest.approx(told[path.name][one.label], abs=NEAR, rel=0)
        assert len(prediction.labels) == len(told[path.name])


def test_the_same_objects_are_found(kept: Path) -> None:
    """Two boxes of nearly one score may change places, and one at the end of the list may be another."""
    told = TOLD["several tasks"]["tasks"]["objects"]
    found: Any = ml.Predictor.load(kept / "runs" / "tasks").predict(PHOTO_FILES, "objects", score=0.0)
    for path, prediction in zip(PHOTO_FILES, found, strict=True):
        objects, left = told[path.name], list(prediction.objects)
        missed = []
        for one in objects:
            match = next((other for other in left if _is(other, one)), None)
            if match is None:
                missed.append(one)
            else:
                left.remove(match)
        assert len(prediction.objects) == pytest.approx(len(objects), abs=1)
        assert len(missed) <= len(objects) // 10, missed
        assert len(left) <= 1 + len(objects) // 10
        surest = max(objects, key=lambda one: one["score"])
        assert surest not in missed


def _is(found: Any, told: dict[str, Any]) -> bool:
    return (
        found.label == told["label"]
        and abs(found.score - told["score"]) < 10 * NEAR
        and list(found.box) == pytest.approx(told["box"], abs=0.05)
        and abs(int(found.pixels().sum()) - told["pixels"]) <= 2 + 0.02 * told["pixels"]
    )


# --- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_TASK)
def test_runs_are_judged_as_they_were(kept: Path, tmp_path: Path, name: str) -> None:
    _done("evaluate", kept / "runs" / name, "--json", tmp_path / "now.json")
    now = _json(tmp_path / "now.json")
    _same(now, _json(kept / "outputs" / f"evaluate-{name}.json"), PERCENT, "/collapsed")  # counted otherwise since then
    own = _json(kept / "runs" / name / "results.json")
    assert now["mAP"] == pytest.approx(own["mAP"], abs=PERCENT)
    assert {row["name"]: row["ap"] for row in now["labels"]} == pytest.approx(
        {row["name"]: row["ap"] for row in own["labels"]}, abs=PERCENT
    )


def test_several_tasks_are_judged_as_they_were(kept: Path, tmp_path: Path) -> None:
    _done("evaluate", kept / "runs" / "tasks", "--json", tmp_path / "now.json")
    now, told = _json(tmp_path / "now.json"), _json(kept / "outputs" / "evaluate-tasks.json")
    _same(now, told, PERCENT, "/tasks/objects/figures/", "/tasks/objects/value")
    figures = told["tasks"]["objects"]["figures"]
    assert now["tasks"]["objects"]["figures"] == pytest.approx(figures, abs=PERCENT_OF_OBJECTS)


@pytest.mark.parametrize("name", [*ONE_TASK, "tasks"])
def test_their_reports_are_made_again(kept: Path, tmp_path: Path, name: str) -> None:
    run = tmp_path / name
    shutil.copytree(kept / "runs" / name, run)
    (run / "report.html").unlink(missing_ok=True)
    _done("report", run)
    page = (run / "report.html").read_text(encoding="utf-8")
    for label in ONE_TASK[name]["labels"] if name in ONE_TASK else TOLD["several tasks"]["tasks"]:
        assert label in page
    results = _json(run / "results.json")
    if name in ONE_TASK:
        assert f"{results['mAP']:.1f}" in page
    else:
        assert all(f"{task['value']:.2f}" in page for task in results["tasks"].values())


def test_they_are_compared(kept: Path, tmp_path: Path) -> None:
    _done("compare", "runs/linear", "runs/rm", "--resamples", "200", "--out", tmp_path / "out", cwd=kept)
    found, told_then = _json(tmp_path / "out" / "comparison.json"), _json(kept / "outputs" / "comparison.json")
    _same(found, told_then, PERCENT, "/pairs_together", "/pairs_share")  # ties count since then
    told = (kept / "outputs" / "labels.csv").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "labels.csv").read_text(encoding="utf-8").splitlines()[0] == told.splitlines()[0]


def test_their_hard_instances_are_found(kept: Path) -> None:
    said = _done("hard", "runs/linear", "--json", "--resamples", "200", cwd=kept)
    _same(json.loads(said), _json(kept / "outputs" / "hard.json"), PERCENT)


@pytest.mark.parametrize("name", ["ml_decoder", "rm"])
def test_what_they_see_is_explained(kept: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "why"
    label = ONE_TASK[name]["labels"][0]
    said = _done("explain", kept / "runs" / name, PHOTO_FILES[0], "--label", label, "--out", out, "--json")
    (row,) = json.loads(said)
    assert row["label"] == label
    assert row["score"] == pytest.approx(ONE_TASK[name]["photos"][PHOTO_FILES[0].name][label], abs=NEAR)
    assert (out / "sheet.png").is_file()


def test_data_is_found_as_it_was(kept: Path, tmp_path: Path) -> None:
    _done("data", "check", "photos", "--json", tmp_path / "now.json", cwd=kept)
    _same(_json(tmp_path / "now.json"), _json(kept / "outputs" / "data-check.json"), NEAR)


# --- stopped runs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOLD["stopped"])
def test_a_stopped_run_goes_on_to_its_end(kept: Path, tmp_path: Path, name: str) -> None:
    """From its checkpoint, not anew: the lines that were there stay, with their seconds, and losses go on as they did."""
    told, run = TOLD["stopped"][name], tmp_path / name
    shutil.copytree(kept / "runs" / name, run)
    before = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert 0 < len(before) == told["lines"] < len(told["finished"])
    assert not (run / "results.json").exists()
    _done("train", "--resume", "--out", run, cwd=kept)
    after = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert after[: len(before)] == before
    rows = [json.loads(line) for line in after]
    number = "step" if name == "stopped_tasks" else "epoch"  # the first version called a step of several tasks an epoch
    assert [row.get(number, row["epoch"]) for row in rows] == [
        one.get(number, one["epoch"]) for one in told["finished"]
    ]
    losses = [[dict(leaves(row["loss"], "")) for row in every] for every in (rows, told["finished"])]
    for now, expected in zip(*losses, strict=True):
        assert now.keys() == expected.keys()
        for task in now:  # which boxes a detector learns from is drawn, with other numbers than in the first version
            assert now[task] == pytest.approx(expected[task], rel=0.2 if task == "/objects" else 0.02)
    for task in losses[0][0]:
        mean, told_mean = (np.mean([one[task] for one in every]) for every in losses)
        assert mean == pytest.approx(told_mean, rel=0.02)
    assert _json(run / "results.json")["title"]
    _done("predict", run, PHOTO_FILES[0], *(["--task", "objects"] if name == "stopped_tasks" else []))


def test_several_tasks_go_on_as_they_would_have(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the random numbers and held-out losses of the version that stopped it: every loss, also after a growth."""
    following, held_out = Trainer._next, Trainer._held_out_losses

    def by_step(self: Trainer, name: str, number: int, taken: int) -> Any:
        batch, _, drawn = following(self, name, number, taken)
        return batch, np.random.SeedSequence([self.phase.train.seed, self.state.step, number, 0]), drawn

    def averaged(self: Trainer) -> dict[str, float]:
        assert self.ema is not None
        with self.ema.applied():
            return held_out(self)

    monkeypatch.setattr(Trainer, "_next", by_step)
    monkeypatch.setattr(Trainer, "_held_out_losses", averaged)
    run = tmp_path / "run"
    shutil.copytree(kept / "runs" / "stopped_tasks", run)
    _done("train", "--resume", "--out", run, cwd=kept)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    for row, expected in zip(rows, TOLD["stopped"]["stopped_tasks"]["finished"], strict=True):
        assert row["loss"] == pytest.approx(expected["loss"], rel=0.02)

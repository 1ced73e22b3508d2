"""A metric in one file of its own, and no other edit: results, terminal, report, comparison and model card show it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import TINY, manylabel, settings
from small_tasks import SMALL

from manylabel.metric import METRICS
from manylabel.run import train

SOURCE = '''
"""How high the scores are."""

from manylabel.metric import CLASSIFICATION, DETECTION, METRICS, Judged, Metric

METRICS.add(
    Metric(
        "mean_score",
        "mean score of everything",
        "mean over images and labels of the score, whatever is there",
        lambda judged: float(judged.scores.mean()) if isinstance(judged, Judged) else float(judged.boxes.found),
        (*CLASSIFICATION, DETECTION),
        better="lower",
        unit="points",
    )
)
'''
TITLE = "mean score of everything"


@pytest.fixture
def new_metric(tmp_path: Path) -> Iterator[None]:
    path = tmp_path / "mean_score.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mean_score", path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield
    METRICS.remove("mean_score")


def test_every_view_of_one_task_shows_it(new_metric: None, photos: Path, tmp_path: Path) -> None:
    runs = [tmp_path / "runs" / name for name in ("one", "two")]
    for run, dropout in zip(runs, (0.0, 0.2), strict=True):
        short = settings(*TINY, "train.epochs=1", "data.workers=0", f"head.dropout={dropout}")
        done = manylabel("train", photos, "--out", run, *short)
        assert done.returncode == 0, done.stderr
        assert TITLE in done.stdout
    results = json.loads((runs[0] / "results.json").read_text(encoding="utf-8"))
    told = results["metrics"]["mean_score"]
    assert (told["title"], told["unit"], told["better"]) == (TITLE, "points", "lower")
    value = f"{results['mean_score']:.4g}"
    assert 0 < results["mean_score"] < 1

    judged = manylabel("evaluate", runs[0], "--json", tmp_path / "now.json")
    assert f"{value} points" in judged.stdout
    assert json.loads((tmp_path / "now.json").read_text(encoding="utf-8"))["metrics"]["mean_score"] == told
    manylabel("report", runs[0], "--out", tmp_path / "page.html")
    for page in (runs[0] / "report.html", tmp_path / "page.html"):
        shown = page.read_text(encoding="utf-8")
        assert "Mean score of everything" in shown
        assert told["definition"] in shown
        assert f"{value}\u00a0points" in shown
    card = (runs[0] / "bundle" / "README.md").read_text(encoding="utf-8")
    assert f"| {TITLE} | {value} points |" in card

    compared = manylabel("compare", *runs, "--resamples", "0", "--out", tmp_path / "both")
    assert compared.returncode == 0, compared.stderr
    assert TITLE in compared.stdout
    assert TITLE in (tmp_path / "both" / "comparison.html").read_text(encoding="utf-8")
    table = (tmp_path / "both" / "figures.csv").read_text(encoding="utf-8")
    assert f"mean_score,{TITLE},points,lower,{results['mean_score']}" in table
    found = json.loads((tmp_path / "both" / "comparison.json").read_text(encoding="utf-8"))
    assert found["metrics"]["mean_score"]["definition"] == told["definition"]
    assert found["methods"][0]["mean_score"] == results["mean_score"]


@pytest.mark.slow
def test_every_view_of_several_tasks_shows_it(new_metric: None, tmp_path: Path) -> None:
    runs = [tmp_path / "runs" / name for name in ("one", "two")]
    for run, steps in zip(runs, (2, 3), strict=True):
        train(out=run, recipe=SMALL, settings=[f"train.steps={steps}"])
    results = json.loads((runs[0] / "results.json").read_text(encoding="utf-8"))
    for task in results["tasks"].values():
        assert task["metrics"]["mean_score"]["title"] == TITLE
        assert task["figures"]["mean_score"] is not None
    assert TITLE in manylabel("evaluate", runs[0]).stdout
    for page in ("report.html", "bundle/README.md"):
        assert TITLE in (runs[0] / page).read_text(encoding="utf-8")
    compared = manylabel("compare", *runs, "--out", tmp_path / "both")
    assert compared.returncode == 0, compared.stderr
    assert TITLE in compared.stdout
    assert TITLE in (tmp_path / "both" / "comparison.html").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "both" / "comparison.json").read_text(encoding="utf-8"))
    assert ["objects", "mean_score"] in found["more"]

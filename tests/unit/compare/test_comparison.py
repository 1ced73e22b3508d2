"""Comparing runs: the bootstrap against literal resampling, seeds, pairs, and errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from manylabel.compare import compare_runs, methods_of, read_run
from manylabel.compare.bootstrap import drawn_ap, draws, interval
from manylabel.compare.figure_file import write_figure_file
from manylabel.compare.figures import draw_figures
from manylabel.compare.label_file import write_label_file
from manylabel.core.comparison import figure_of
from manylabel.error import DataError
from manylabel.evaluation import describe, judge
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace
from manylabel.metric import average_precision, f1_scores
from manylabel.printing_comparison import print_comparison
from manylabel.report.comparison_page import losing, write_comparison_page
from manylabel.score_file import read_scores, write_scores

LABELS = ["cat", "dog", "cow", "horse"]


def data(seed: int = 0, images: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((images, 4)) < 0.3, PRESENT, ABSENT).astype(np.int8)
    matrix[rng.random(matrix.shape) < 0.1] = UNKNOWN
    scores = (rng.random(matrix.shape) + 0.4 * (matrix == PRESENT)).astype(np.float32)
    return np.round(scores, 1), matrix  # rounded: many ties


def test_draws_give_the_ap_of_the_drawn_images() -> None:
    scores, matrix = data()
    weights = draws(len(scores), 5)
    assert (weights.sum(axis=1) == len(scores)).all()
    found = drawn_ap(scores, matrix, weights)
    for row, ap in zip(weights, found, strict=True):
        chosen = np.repeat(np.arange(len(scores)), row.astype(int))
        assert np.allclose(ap, average_precision(scores[chosen], matrix[chosen]))
    nothing = drawn_ap(scores, np.full_like(matrix, ABSENT), weights)
    assert np.isnan(nothing).all()
    assert np.isnan(interval(nothing[:, 0])).all()


def write_run(folder: Path, better: dict[str, float], seed: int = 0, size: int = 224, **head: Any) -> Path:
    """A run whose scores of these labels tell more than those of others."""
    rng = np.random.default_rng(7)
    matrix = np.where(rng.random((300, 4)) < 0.3, PRESENT, ABSENT).astype(np.int8)
    noise = np.random.default_rng(seed + 100).random(matrix.shape)
    push = np.array([better.get(name, 0.3) for name in LABELS])
    scores = ((noise + push * (matrix == PRESENT)) / 2).astype(np.float32)
    ap = 100 * average_precision(scores, matrix)
    results = {
        "schema": 1,
        "mAP": float(ap.mean()),
        "CF1": 50.0,
        "OF1": 51.0,
        "calibration_error": 2.0,
        "data": {"name": "photos", "split": "val", "images": 300},
        "model": {"head": head.get("name", "hsq"), "image_size": size, "parameters": 10, "trainable_parameters": 5},
        "labels": [{"name": n, "ap": float(v), "support": 30} for n, v in zip(LABELS, ap, strict=True)],
    }
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(results))
    weights = [[0.7, 0.3]] * 4
    experts = {"experts": ["shared 1", "own 1"], "gates": LABELS, "layers": [weights], "allowed": None}
    (folder / "details.json").write_text(json.dumps({"experts": experts}))
    config = {"head": {"name": "hsq", **head}, "train": {"seed": seed}, "backbone": {"image_size": size}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "metrics.jsonl").write_text('{"epoch": 1, "seconds": 2.5}\n{"epoch": 2, "seconds": 2.5}\n')
    write_scores(folder, np.array([f"{i}.jpg" for i in range(300)]), scores, matrix)
    return folder


def test_a_comparison_end_to_end(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"a{s}", {}, s, shared_experts=0) for s in (0, 1)]
    runs += [write_run(tmp_path / f"b{s}", {"cat": 0.9, "dog": 0.8, "cow": 0.05}, s, shared_experts=4) for s in (0, 1)]
    methods = methods_of([read_run(run) for run in runs])
    assert [m.name for m in methods] == ["hsq shared_experts=0", "hsq shared_experts=4"]
    assert [len(m.runs) for m in methods] == [2, 2]
    found = compare_runs(methods, [("cow", "horse")], resamples=200)
    (row,) = found["differences"]
    assert row["surely_better"] == 2
    assert row["surely_worse"] == 1
    assert [label["name"] for label in losing(row)] == ["cow"]
    assert row["mAP"]["low"] < row["mAP"]["change"] < row["mAP"]["high"]
    kept = 4 - row["worse"]
    assert row["pairs_together"] == kept * (kept - 1) // 2
    assert found["pairs"][0]["gap"]["hsq shared_experts=4"] > 10
    assert found["methods"][0]["train_seconds"] == 5
    assert found["methods"][0]["mAP_deviation"] is not None

    figures = draw_figures(found, tmp_path / "figures")
    names = {path.name[3:] for _, path in figures}
    assert {"mAP.png", "pair-gaps.png", "pair-cow-horse.png", "labels-hsq-shared-experts=4.png"} <= names
    assert sum(name.startswith("experts-") for name in names) == 2
    page = write_comparison_page(found, figures, tmp_path / "comparison.html").read_text()
    assert "cow" in page
    assert page.count("data:image/png") == len(figures)
    write_label_file(found, tmp_path / "labels.csv")
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("label,support,ap: hsq shared_experts=0")


# Average precisions of the HSQ paper's Table 3, in its order: Q2L-TResL and HSQ-CvN
VOC = [
    "aero",
    "bike",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "table",
    "dog",
    "horse",
    "mbike",
    "person",
    "plant",
    "sheep",
    "sofa",
    "train",
    "tv",
]
Q2L = [
    99.9,
    98.9,
    99.0,
    98.4,
    87.7,
    98.6,
    98.8,
    99.1,
    84.5,
    98.3,
    89.2,
    99.2,
    99.2,
    99.2,
    99.3,
    90.2,
    98.8,
    88.3,
    99.5,
    95.5,
]
HSQ = [
    99.9,
    99.9,
    97.2,
    99.4,
    84.1,
    99.1,
    98.3,
    99.1,
    84.9,
    100.0,
    91.2,
    99.2,
    99.9,
    99.9,
    99.2,
    88.0,
    100.0,
    91.6,
    99.8,
    97.8,
]


def test_pairs_are_counted_as_the_paper_counts_them(tmp_path: Path) -> None:
    """'Our model improves 105 pairs of labels': 15·14/2, and 15 labels are no worse only if the three ties count."""
    runs = []
    for number, figures in enumerate((Q2L, HSQ)):
        run = write_run(tmp_path / str(number), {}, shared_experts=number)
        (run / "scores.npz").unlink()
        (run / "details.json").unlink()
        told = json.loads((run / "results.json").read_text())
        told["labels"] = [{"name": n, "ap": ap, "support": 30} for n, ap in zip(VOC, figures, strict=True)]
        (run / "results.json").write_text(json.dumps(told))
        runs.append(read_run(run))
    (row,) = compare_runs(methods_of(runs), resamples=0)["differences"]
    assert (row["better"], row["worse"]) == (12, 5)
    assert row["pairs_together"] == 105
    assert row["pairs_share"] == pytest.approx(100 * 105 / 190, abs=1e-3)


def test_figures_of_the_top_three_stand_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table 2 of the HSQ paper: CF1 and OF1 of all, and of the top 3."""
    runs = []
    for number in range(2):
        run = write_run(tmp_path / str(number), {}, shared_experts=number)
        scores = read_scores(run)
        assert scores is not None
        told = judge(scores.scores, scores.matrix, LabelSpace(tuple(LABELS)), np.full(4, 0.5), fitted_here=True)
        results = describe("run", {"name": "photos", "split": "val", "images": 300}, {"head": "hsq"}, dict(told))
        (run / "results.json").write_text(json.dumps(results, default=str))
        runs.append(read_run(run))
    found = compare_runs(methods_of(runs), resamples=0)
    at_three = f1_scores(scores.scores, scores.matrix, top_k=3)
    for place, value in (("top3.CF1", at_three.CF1), ("top3.OF1", at_three.OF1)):
        assert figure_of(found["methods"][1], place) == pytest.approx(100 * value, abs=1e-3)
    print_comparison(found, losing)
    assert "CF1 (at 0.5, top 3)" in capsys.readouterr().out
    page = write_comparison_page(found, [], tmp_path / "comparison.html").read_text()
    assert "OF1 (at 0.5, top 3)" in page
    write_figure_file(found, tmp_path / "figures.csv")
    assert "top3.CF1" in (tmp_path / "figures.csv").read_text()


def test_resolutions_become_a_line(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / f"{n}{size}", {"cat": size / 500}, size=size, shared_experts=n)
        for n in (0, 4)
        for size in (224, 320)
    ]
    found = compare_runs(methods_of([read_run(run) for run in runs]), resamples=0)
    assert [line["sizes"] for line in found["resolutions"]] == [[224, 320], [224, 320]]
    assert "resolutions.png" in {path.name[3:] for _, path in draw_figures(found, tmp_path / "figures")}


def test_without_scores_there_are_no_intervals(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a", {}, shared_experts=0), write_run(tmp_path / "b", {"cat": 0.9}, shared_experts=1)]
    (runs[0] / "scores.npz").unlink()
    found = compare_runs(methods_of([read_run(run) for run in runs]))
    assert found["resamples"] == 0
    assert found["differences"][0]["mAP"]["low"] is None
    assert losing(found["differences"][0]) is not None
    assert any("no intervals" in note for note in found["notes"])


def test_names_can_be_given(tmp_path: Path) -> None:
    runs = [read_run(write_run(tmp_path / n, {}, shared_experts=i)) for i, n in enumerate("ab")]
    assert [m.name for m in methods_of(runs, ["one", "two"])] == ["one", "two"]
    with pytest.raises(DataError, match="1 names for 2 methods"):
        methods_of(runs, ["one"])


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", {}, shared_experts=0), write_run(tmp_path / "b", {}, shared_experts=1)

    def go(*pairs: tuple[str, str]) -> None:
        compare_runs(methods_of([read_run(a), read_run(b)]), pairs, resamples=0)

    with pytest.raises(DataError, match="finished runs"):
        read_run(tmp_path / "nothing")
    with pytest.raises(DataError, match="only one method"):
        compare_runs(methods_of([read_run(a)]))
    with pytest.raises(DataError, match="no label 'hors'.*horse"):
        go(("cow", "hors"))
    stored = json.loads((b / "results.json").read_text())
    (b / "results.json").write_text(json.dumps({**stored, "labels": stored["labels"][:3]}))
    with pytest.raises(DataError, match="scores of 4 labels, its results are of 3"):
        go()
    renamed = [{**row, "name": row["name"].replace("cow", "calf")} for row in stored["labels"]]
    (b / "results.json").write_text(json.dumps({**stored, "labels": renamed}))
    with pytest.raises(DataError, match="different labels"):
        go()
    (b / "results.json").write_text(json.dumps({**stored, "data": {**stored["data"], "images": 299}}))
    with pytest.raises(DataError, match="299"):
        go()
    (b / "results.json").write_text("{")
    with pytest.raises(DataError, match="no valid JSON"):
        go()
    (b / "results.json").write_text(json.dumps(stored))
    scores = read_scores(b)
    assert scores is not None
    write_scores(b, scores.keys[::-1], scores.scores, scores.matrix)
    with pytest.raises(DataError, match="different images"):
        go()
    (b / "scores.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(DataError, match="cannot be read"):
        go()
    np.savez(b / "scores.npz", keys=np.array([{"a": 1}], dtype=object), scores=scores.scores, matrix=scores.matrix)
    with pytest.raises(DataError, match="cannot be read"):  # no pickle from strangers
        go()

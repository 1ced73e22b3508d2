"""`manylabel hard` on planted runs: missed small objects come out, two runs are told apart, gaps are said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import write_labelled_photos
from hard_files import NAMES, put_boxed_data, put_run
from labelled_files import table_at

from manylabel.compare import read_run
from manylabel.error import DataError
from manylabel.hard_runs import study_runs
from manylabel.hard_runs.files import write_hard_files
from manylabel.hard_runs.label_file import label_csv
from manylabel.printing_hard import print_hard
from manylabel.score_file import read_scores, write_scores


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_boxed_data(tmp_path_factory.mktemp("boxed") / "data")


@pytest.fixture(scope="module")
def runs(boxed: Path) -> dict[str, Path]:
    return {
        "weak": put_run(boxed.parent / "weak", boxed, ("small", "medium"), banana=0.4, bed=0.1),
        "misses-small": put_run(boxed.parent / "misses-small", boxed),
        "finds-all": put_run(boxed.parent / "finds-all", boxed, ()),
    }


def study(run: Path, other: Path | None = None, **more: Any) -> dict[str, Any]:
    return study_runs(read_run(run), read_run(other) if other else None, **{"resamples": 200, **more})[0]


def test_missed_small_objects_come_out(runs: dict[str, Path]) -> None:
    found = study(runs["misses-small"])
    small, medium, large = found["sizes"]["rows"]
    assert small["pairs"] == medium["pairs"] == 30
    assert large["pairs"] == 120
    assert small["share"] > 0.7
    assert small["low"] <= small["share"] <= small["high"]
    assert medium["hard"] == large["hard"] == 0
    assert small["mAP"] < 40 < 99 < large["mAP"]
    assert small["labels_scored"] <= 6
    assert small["area"] == "below 0.33 %"
    assert found["hard_pairs"] == small["hard"]
    assert found["hard_images"] == small["hard"]  # each image has one
    assert sum(row["hard"] for row in found["labels"]) == small["hard"]
    within = next(c for c in found["correlations"] if c["of"] == ["cost", "size"])
    assert within["high"] < -0.3
    for image in found["images_shown"]:
        assert [label["state"] for label in image["labels"]] == ["hard", "easy"]


def test_nothing_is_hard_where_everything_is_found(runs: dict[str, Path]) -> None:
    found = study(runs["finds-all"])
    assert found["hard_pairs"] == found["hard_images"] == 0
    assert found["images_shown"] == []
    assert all(row["share"] == 0 for row in found["labels"])
    assert next(c for c in found["correlations"] if c["of"] == ["share", "ap"])["rho"] is None  # it never changes
    assert [row["mAP"] for row in found["sizes"]["rows"]] == [100, 100, 100]


def test_labels_best_and_worst_and_their_training_images(runs: dict[str, Path]) -> None:
    found = study(runs["misses-small"], labels=["tv"], top=3)
    assert {row["name"] for row in found["labels"]} == set(NAMES)
    shares = [row["share"] for row in found["labels"]]
    assert shares == sorted(shares, reverse=True)
    assert all(row["train"] == 10 for row in found["labels"])
    run = read_run(runs["misses-small"])
    assert found["worst"][0]["ap"] == pytest.approx(run.ap.min(), abs=1e-4)
    assert found["best"][0]["ap"] == pytest.approx(run.ap.max(), abs=1e-4)
    (tv,) = found["pictured"]
    scores = [row["score"] for row in tv["smallest"]]
    assert len(scores) == 3
    assert scores == sorted(scores)
    assert tv["largest"][0]["score"] > tv["smallest"][0]["score"]
    assert tv["smallest"][0]["size"] == pytest.approx(9 / (64 * 48), rel=0.01)
    assert [label["label"] for row in tv["largest"] for label in row["others"]].count("tv") == 0


def test_two_runs_by_size_label_and_instance(runs: dict[str, Path]) -> None:
    second = study(runs["misses-small"], runs["finds-all"])["second"]
    small, medium, large = second["sizes"]
    assert small["change"] == pytest.approx(small["second"] - small["first"], abs=1e-3)
    assert small["low"] > 20
    assert small["low"] <= small["change"] <= small["high"] + 1
    assert medium["change"] == large["change"] == 0
    assert second["hard_of_first"]["found"] == second["hard_of_first"]["hard"] > 20
    assert second["hard_of_second"] == {"hard": 0, "found": 0, "easy": 0, "still_hard": 0}
    assert [row["first"] for row in second["labels"]] == sorted(row["first"] for row in second["labels"])
    assert all(row["change"] > 0 for row in second["labels"])
    assert second["mAP"]["low"] > 0


def test_shares_of_earlier_stages_are_shown_where_they_are_told(runs: dict[str, Path], capsys: Any) -> None:
    weak = study(runs["weak"])
    assert {row["name"]: row["alpha"] for row in weak["labels"] if "alpha" in row} == {"banana": 0.4, "bed": 0.1}
    assert ["share", "alpha"] in [c["of"] for c in weak["correlations"]]
    print_hard(weak, 5, asked=False)
    assert "earlier stages" in capsys.readouterr().out
    print_hard(study(runs["misses-small"]), 5, asked=False)
    assert "earlier stages" not in capsys.readouterr().out
    assert ",alpha" in label_csv(weak).splitlines()[0]


def test_files_page_and_table(runs: dict[str, Path], tmp_path: Path) -> None:
    found, data = study_runs(read_run(runs["weak"]), read_run(runs["finds-all"]), top=4, resamples=100)
    write_hard_files(found, data, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "hard.json").read_text()) == found
    page = (tmp_path / "out" / "hard.html").read_text()
    assert page.count("data:image/jpeg") >= 4
    assert page.count("data:image/png") == len(list((tmp_path / "out" / "figures").iterdir())) == 4
    for words in ("COCO's limits", "Share of earlier stages", "What goes together", "finds-all</bdi> against"):
        assert words in page
    lines = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert len(lines) == 7
    assert lines[0] == (
        "label,images,hard,share_hard,low,ap,training_images,median_object_share,alpha,"
        "ap_second,change,change_low,change_high"
    )


def test_data_without_boxes_or_gone_is_said_and_the_rest_goes_on(runs: dict[str, Path], tmp_path: Path) -> None:
    moved = shutil.copytree(runs["misses-small"], tmp_path / "moved")
    (moved / "config.yaml").write_text(yaml.safe_dump({"data": {"path": str(tmp_path / "gone")}}))
    found = study(moved, runs["finds-all"])
    assert found["hard_pairs"] > 20
    assert found["sizes"] is None
    assert found["second"]["sizes"] is None
    assert any("the data cannot be read" in note for note in found["notes"])
    write_hard_files(found, None, tmp_path / "out")
    assert "data:image/jpeg" not in (tmp_path / "out" / "hard.html").read_text()

    photos = write_labelled_photos(tmp_path / "photos", 12)
    plain = shutil.copytree(moved, tmp_path / "plain")
    (plain / "config.yaml").write_text(yaml.safe_dump({"data": {"path": str(photos)}}))
    names = ["red", "green", "blue", "white"]
    results = json.loads((plain / "results.json").read_text())
    results["labels"] = [{"name": name, "ap": 50.0, "support": 3} for name in names]
    (plain / "results.json").write_text(json.dumps(results))
    table = table_at(photos)
    write_scores(plain, table.keys, np.random.default_rng(1).random((12, 4)), table.matrix)
    notes = " ".join(study(plain)["notes"])
    assert "the data has no boxes" in notes
    assert "no split 'train'" in notes


def test_errors_say_what_to_do(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no label 'bananna'.*did you mean 'banana'"):
        study(runs["weak"], labels=["bananna"])
    bare = shutil.copytree(runs["weak"], tmp_path / "bare")
    (bare / "scores.npz").unlink()
    with pytest.raises(DataError, match=r"bare has no scores.npz.*train it again"):
        study(bare)
    with pytest.raises(DataError, match=r"bare has no scores.npz"):
        study(runs["weak"], bare)
    other = shutil.copytree(runs["weak"], tmp_path / "other")
    stored = read_scores(other)
    assert stored is not None
    write_scores(other, np.array([f"x{key}" for key in stored.keys]), stored.scores, stored.matrix)
    with pytest.raises(DataError, match="judged on different images"):
        study(runs["weak"], other)
    results = json.loads((other / "results.json").read_text())
    results["labels"][0]["name"] = "plum"
    (other / "results.json").write_text(json.dumps(results))
    with pytest.raises(DataError, match="have different labels"):
        study(runs["weak"], other)

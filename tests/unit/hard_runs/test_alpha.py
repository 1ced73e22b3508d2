"""α as hardness: kept with the scores of every image, and set beside what another run finds hard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import TINY
from hard_files import NAMES, put_boxed_data, put_run
from labelled_files import table_at

from manylabel import run
from manylabel.compare import read_run
from manylabel.error import DataError
from manylabel.hard_runs import study_runs
from manylabel.hard_runs.files import write_hard_files
from manylabel.hard_runs.maps import draw_maps
from manylabel.metric import f1_scores
from manylabel.printing_hard import print_hard
from manylabel.score_file import read_scores, write_scores


@pytest.fixture(scope="module")
def boxed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_boxed_data(tmp_path_factory.mktemp("boxed") / "data")


@pytest.fixture(scope="module")
def runs(boxed: Path) -> tuple[Path, Path]:
    """A probe that misses small objects, and a mixture that finds them with an α that is high just there."""
    probe = put_run(boxed.parent / "probe", boxed)
    found, _ = study_runs(read_run(probe), resamples=0)
    table = table_at(boxed)
    keys = table.subset(table.rows("val")).keys
    misses = {image["file"] for image in study_runs(read_run(probe), top=1000, resamples=0)[0]["images_shown"]}
    alpha = np.array([[0.8 if str(key) in misses else 0.1] for key in keys], np.float32)
    by_ap = sorted(found["labels"], key=lambda row: row["ap"] or 0)
    labels = {row["name"]: 0.5 - 0.05 * place for place, row in enumerate(by_ap)}  # the worst has the largest
    return probe, put_run(boxed.parent / "mixture", boxed, (), alpha, **labels)


def _study(*folders: Path, **more: Any) -> dict[str, Any]:
    found, _ = study_runs(*(read_run(folder) for folder in folders), **{"resamples": 100, **more})
    return dict(found)


def test_alpha_of_every_image_is_kept_with_its_scores(photos: Path, tmp_path: Path) -> None:
    settings = [*TINY, "neck.name=rm", "neck.stages=rm1,rm2", "train.epochs=1", "data.workers=0"]
    for share, columns in (("image", 1), ("label", 4)):
        out = tmp_path / share
        results = run.train(str(photos), out=out, settings=[*settings, f"neck.share={share}"]).results
        scores = read_scores(out)
        assert scores is not None
        assert scores.alpha is not None
        assert scores.alpha.shape == (len(scores.keys), columns)
        for n, label in enumerate(results["labels"]):
            has = scores.matrix[:, n] == 1
            if has.any():
                own = scores.alpha[has, n if columns > 1 else 0]
                assert label["alpha"] == pytest.approx(float(own.mean()), rel=1e-4)


def test_a_file_with_a_strange_alpha_is_refused(tmp_path: Path) -> None:
    keys, scores, matrix = np.array(["a", "b"]), np.full((2, 3), 0.5, np.float32), np.zeros((2, 3), np.int8)
    write_scores(tmp_path, keys, scores, matrix, np.full((2, 1), 1.5))
    with pytest.raises(DataError, match="alpha: 2 of them are no numbers between 0 and 1"):
        read_scores(tmp_path)
    write_scores(tmp_path, keys, scores, matrix, np.full((2, 2), 0.5))
    with pytest.raises(DataError, match=r"holds alpha float32 \(2, 2\) of 2 images"):
        read_scores(tmp_path)
    write_scores(tmp_path, keys, scores, matrix)
    kept = read_scores(tmp_path)
    assert kept is not None
    assert kept.alpha is None


def test_table_3_has_the_average_precision_of_the_other_run(runs: tuple[Path, Path]) -> None:
    probe, mixture = runs
    second = _study(probe, mixture)["second"]
    assert [row["alpha"] for row in second["alphas"]] == pytest.approx([0.5, 0.45, 0.4, 0.35, 0.3, 0.25])
    ap = dict(zip(NAMES, read_run(probe).ap, strict=True))
    assert [row["ap"] for row in second["alphas"]] == pytest.approx([ap[row["name"]] for row in second["alphas"]])
    assert [row["place"] for row in second["alphas"]] == [1, 2, 3, 4, 5, 6]
    row = next(row for row in second["correlations"] if row["of"] == ["ap", "alpha"])
    assert row["rho"] == pytest.approx(-1)  # the mixture's own AP, 100 everywhere, has no rank
    own = next(row for row in _study(mixture)["correlations"] if row["of"] == ["ap", "alpha"])
    assert own["rho"] is None


def test_alpha_and_single_images(runs: tuple[Path, Path]) -> None:
    probe, mixture = runs
    second = _study(probe, mixture)["second"]
    row = next(row for row in second["correlations"] if row["of"] == ["cost", "alpha"])
    assert row["labels"] == 90
    assert row["rho"] > 0.6
    assert ["cost", "alpha"] in [row["of"] for row in _study(mixture)["correlations"]]
    assert ["cost", "alpha"] not in [row["of"] for row in _study(probe)["correlations"]]


def test_what_the_first_misses_and_the_second_finds(runs: tuple[Path, Path]) -> None:
    probe, mixture = runs
    found = _study(probe, mixture, top=7)
    rows = found["second"]["found"]
    assert len(rows) == 7
    gains = [row["first_cost"] - row["second_cost"] for row in rows]
    assert gains == sorted(gains, reverse=True)
    assert all(row["alpha"] == pytest.approx(0.8) and row["first"] < 0.5 < row["second"] for row in rows)
    assert _study(mixture, probe)["second"]["found"] == []


def test_hard_labels_of_two_backbones(runs: tuple[Path, Path], boxed: Path) -> None:
    again = put_run(boxed.parent / "again", boxed) if not (boxed.parent / "again").exists() else boxed.parent / "again"
    same = _study(runs[0], again)["second"]["agreement"]
    assert same["worst"] == 1
    assert same["shared"] == [_study(runs[0])["worst"][0]["name"]]
    assert same["by_chance"] == pytest.approx(1 / 6, abs=0.01)
    assert [row["rho"] for row in same["ranks"]] == pytest.approx([1, 1])
    assert [row["of"] for row in same["ranks"]] == [["ap", "ap"], ["share", "share"]]


def test_six_figures_at_one_half(runs: tuple[Path, Path], capsys: Any) -> None:
    found = _study(*runs)
    scores = read_scores(runs[0])
    assert scores is not None
    expected = f1_scores(scores.scores, scores.matrix)
    assert [row["name"] for row in found["second"]["figures"]] == ["CP", "CR", "CF1", "OP", "OR", "OF1"]
    assert [row["first"] for row in found["second"]["figures"]] == pytest.approx(
        [100 * v for v in expected[:6]], abs=1e-3
    )
    print_hard(found, 5, asked=False)  # type: ignore[arg-type]
    said = capsys.readouterr().out
    for words in ("at score 0.5", "CP", "worst labels of either run", "labels by alpha of mixture", "found by mixture"):
        assert words in said


def test_maps_stand_beside_them(photos: Path, tmp_path: Path) -> None:
    common = [*TINY, "train.epochs=1", "data.workers=0", "optimiser.lr=0.02"]
    first = run.train(str(photos), out=tmp_path / "lp", settings=[*common, "head.prior_bias=false"]).folder
    more = [f"data.split_file={first / 'split.csv'}", "neck.name=rm", "neck.stages=rm1", "train.epochs=8"]
    second = run.train(str(photos), out=tmp_path / "rm", settings=[*common, *more]).folder
    one, other = read_run(first), read_run(second)
    found, data = study_runs(one, other, resamples=0)
    assert found["second"] is not None
    assert found["second"]["found"]
    maps = draw_maps(found, data, one, other)
    assert {f"{row['file']} {row['label']}" for row in found["second"]["found"]} == set(maps)
    write_hard_files(found, data, tmp_path / "out", maps)
    assert (tmp_path / "out" / "hard.html").read_text().count("where both runs look for") == len(maps)
    (second / "bundle").rename(second / "gone")
    assert draw_maps(found, data, one, other) == {}
    assert any("maps are left out" in note for note in found["notes"])

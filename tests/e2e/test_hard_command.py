"""`manylabel hard` as a user meets it: tables, JSON, CSV, a page, errors; and the section in a run's own report."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from command import manylabel
from conftest import SHARED
from hard_files import put_boxed_data, put_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("hard")
    data = put_boxed_data(folder / "data")
    return put_run(folder / "first", data), put_run(folder / "second", data, ())


def test_tables_for_one_run_and_for_two(runs: tuple[Path, Path], tmp_path: Path) -> None:
    one = manylabel("hard", runs[0], "--label", "tv", "--top", "3", "--html", tmp_path / "one.html")
    assert one.returncode == 0, one.stderr
    for words in (
        "present labels are hard",
        "worst tenth by AP",
        "Spearman",
        "below 0.33 %",
        "tv: the smallest scores",
    ):
        assert words in one.stdout
    assert (tmp_path / "one.html").read_text().startswith("<!doctype html>")
    two = manylabel("hard", *runs, "--resamples", "100", "--out", tmp_path / "two")
    assert two.returncode == 0, two.stderr
    assert "second against first: mAP +" in two.stdout
    assert "are hard for it too" in two.stdout
    shown = {path.name for path in (tmp_path / "two").iterdir() if path.name[0] != "."}
    assert shown == {"hard.html", "hard.json", "labels.csv", "figures"}
    again = ("hard", *runs, "--resamples", "0", "--out", tmp_path / "two")
    assert manylabel(*again).returncode == 2
    asked = manylabel(*again, "--overwrite")
    assert asked.returncode == 0, asked.stderr


def test_json_and_csv_are_all_that_is_on_standard_output(runs: tuple[Path, Path]) -> None:
    told = manylabel("hard", runs[0], "--json", "--resamples", "0")
    assert json.loads(told.stdout)["sizes"]["rows"][0]["hard"] > 20
    listed = manylabel("hard", runs[0], "--csv", "--resamples", "0")
    rows = list(csv.DictReader(io.StringIO(listed.stdout)))
    assert len(rows) == 6
    assert sum(int(row["hard"]) for row in rows) == json.loads(told.stdout)["hard_pairs"]


def test_other_limits_give_other_instances(runs: tuple[Path, Path]) -> None:
    def hard(*more: str) -> int:
        return int(json.loads(manylabel("hard", runs[0], "--json", "--resamples", "0", *more).stdout)["hard_pairs"])

    assert hard("--hard-cost", "0.9") < hard() <= hard("--hard-cost", "0.02")


def test_what_is_wrong_is_said(runs: tuple[Path, Path], tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("my own words")
    for arguments, message in (
        ([tmp_path / "nothing"], "there is no"),
        ([runs[0], runs[0]], "given twice"),
        ([runs[0], "--label", "tvv"], "did you mean 'tv'"),
        ([runs[0], "--json", "--csv"], "exclude each other"),
        ([runs[0], "--easy-cost", "0.2"], "--easy-cost 0.2 must be below --hard-cost 0.05"),
        ([runs[0], "--resamples", "7"], "need 100 draws"),
        ([runs[0], "--html", mine], "was not written by manylabel"),
    ):
        done = manylabel("hard", *arguments)
        assert done.returncode == 2, done.stdout
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert mine.read_text() == "my own words"


def test_a_run_of_ones_own_has_the_section_and_can_be_studied(trained: Path) -> None:
    out = trained
    part = json.loads((out / "details.json").read_text())["hard"]
    assert part["sizes"] is None
    assert 'id="hard"' in (out / "report.html").read_text()
    found = json.loads(manylabel("hard", out, "--json", "--resamples", "0").stdout)
    assert found["hard_pairs"] == part["hard_pairs"]
    assert found["labels"][0]["train"] > 0
    assert "figures by object size are left out: the data has no boxes" in found["notes"]


def test_real_photos_with_boxes(tmp_path: Path) -> None:
    voc = SHARED / "voc12-small"
    if not voc.is_dir():
        pytest.skip("needs the real VOC sample beside the repository (../shared/data/voc12-small)")
    from labelled_files import table_at

    from manylabel.hard import find_pairs, size_of
    from manylabel.hard_section import object_shares

    table = table_at(voc)
    judged = table.subset(table.rows("val"))
    pairs = find_pairs((judged.matrix == 1) * 0.5, judged.matrix)
    share = object_shares(judged, pairs)
    assert share is not None
    counts = [int((size_of(share) == size).sum()) for size in (0, 1, 2, -1)]
    assert sum(counts) == len(pairs)
    assert counts[2] > counts[1] > counts[0] > 0  # what VOC shows is mostly large
    assert counts[3] == 0

"""The report's section on hard instances: what it says, what it leaves out, and files that are not right."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hard_files import put_boxed_data, put_run
from labelled_files import table_at, varied_table
from test_report import HOSTILE, PIXEL, details, results

from manylabel.compare import read_run
from manylabel.error import DataError
from manylabel.hard import find_pairs
from manylabel.hard_section import PICTURES, hard_details, image_areas, object_shares
from manylabel.report import write_report
from manylabel.report.schema import clean_results


def hard(names: list[str], sizes: bool = True) -> dict[str, Any]:
    label = {"label": names[0], "score": 0.05, "cost": 0.3, "state": "hard"}
    easy = {"label": names[-1], "score": 0.97, "cost": None, "state": "easy"}
    return {
        "definition": "a label that is missed beside an easy one",
        "pairs": 90,
        "hard_pairs": 9,
        "images": 40,
        "images_with_several": 30,
        "hard_images": 8,
        "labels": [{"name": name, "support": 10, "hard": 3, "share": 0.3} for name in names],
        "sizes": [{"name": "small", "area": "below 0.33 %", "pairs": 9, "hard": 5, "share": 5 / 9}] if sizes else None,
        "examples": [{"file": names[0], "thumbnail": PIXEL, "labels": [label, easy]}],
    }


def page(tmp_path: Path, names: list[str], part: dict[str, Any] | None) -> str:
    given = details(names) | ({} if part is None else {"hard": part})
    return write_report(results(names), given, tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_section_says_how_many_which_and_where(tmp_path: Path) -> None:
    names = ["banana", "bed", "tv"]
    text = page(tmp_path, names, hard(names))
    for words in (
        'href="#hard"',
        "9 of the 90 labels",
        "8 of 40 images",
        "missed beside an easy one",
        "small is below 0.33 %",
    ):
        assert words in text
    assert 'id="hard-sizes-chart"' in text
    assert 'class="hard" title="banana: score 5' in text
    assert 'id="hard-sizes-chart"' not in page(tmp_path, names, hard(names, sizes=False))
    assert 'id="hard"' not in page(tmp_path, names, None)


def test_nothing_hard_is_said_without_charts(tmp_path: Path) -> None:
    part = hard(["a", "b", "c"]) | {"hard_pairs": 0, "hard_images": 0, "labels": [], "examples": []}
    text = page(tmp_path, ["a", "b", "c"], part)
    assert "0 of the 90 labels" in text
    assert 'id="hard-labels-chart"' not in text


def test_words_stay_words_and_only_real_pictures_are_shown(tmp_path: Path) -> None:
    part = hard(HOSTILE)
    part["examples"][0]["thumbnail"] = "https://example.org/x.png"
    text = page(tmp_path, HOSTILE, part)
    assert "example.org" not in text
    assert text.count("<script") == 2
    assert "<img src=x" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: part.pop("pairs"), r"details.hard lacks the key 'pairs'"),
        (lambda part: part["labels"][0].update(share=1.5), r"details.hard.labels\[0\].share is 1.5"),
        (lambda part: part["sizes"][0].pop("area"), r"details.hard.sizes\[0\] lacks the key 'area'"),
        (lambda part: part["examples"][0]["labels"][0].update(state="odd"), r"state is 'odd'; it must be one of hard"),
        (lambda part: part.update(examples="x"), r"details.hard.examples must be a list"),
    ],
)
def test_a_file_that_is_not_right_is_named(tmp_path: Path, change: Any, message: str) -> None:
    part = copy.deepcopy(hard(["a", "b", "c"]))
    change(part)
    with pytest.raises(DataError, match=message):
        page(tmp_path, ["a", "b", "c"], part)


def test_alpha_of_a_label_passes_and_is_a_share(tmp_path: Path) -> None:
    given = results(["a", "b", "c"])
    given["labels"][1]["alpha"] = 9.09e-10
    assert [label["alpha"] for label in clean_results(given)["labels"]] == [None, 9.09e-10, None]
    text = write_report(given, {}, tmp_path / "report.html").read_text()
    assert '"alpha":[null,9.09e-10,null]' in text
    given["labels"][1]["alpha"] = 1.5
    with pytest.raises(DataError, match=r"labels\[1\].alpha is 1.5"):
        clean_results(given)


def test_the_part_of_a_judged_table(tmp_path: Path) -> None:
    data = put_boxed_data(tmp_path / "data")
    run = read_run(put_run(tmp_path / "run", data))
    table = table_at(data)
    judged = table.subset(table.rows("val"))
    assert run.scores is not None
    part = hard_details(judged, run.scores.scores)["hard"]
    assert part["hard_pairs"] > 20
    assert len(part["examples"]) == PICTURES
    assert all(example["thumbnail"].startswith("data:image/jpeg") for example in part["examples"])
    assert [row["name"] for row in part["sizes"]] == ["small", "medium", "large"]
    assert part["sizes"][0]["hard"] == part["hard_pairs"]
    one_each = judged.matrix.copy()
    one_each[np.arange(len(judged)), np.argmax(one_each, axis=1)] = 0
    lone = type(judged)(judged.name, judged.source, judged.keys, judged.labels, one_each)
    assert hard_details(lone, run.scores.scores) == {}  # no company, nothing hard


def test_sizes_come_from_the_header_where_the_label_file_has_none_and_crowds_say_nothing(tmp_path: Path) -> None:
    table = varied_table(tmp_path)  # 40×30 pixels; boxes: 10×20, a crowd, 16.5×24.75
    areas = image_areas(table, np.array([0, 1]))
    assert areas[:2].tolist() == [1200, 1200]
    assert np.isnan(areas[2:]).all()
    pairs = find_pairs(np.full(table.matrix.shape, 0.5), table.matrix)
    share = object_shares(table, pairs)
    assert share is not None
    known = {(int(n), int(c)): s for n, c, s in zip(pairs.row, pairs.label, share, strict=True) if not np.isnan(s)}
    assert known == {(0, 0): pytest.approx(200 / 1200), (1, 1): pytest.approx(16.5 * 24.75 / 1200)}

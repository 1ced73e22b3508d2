"""The cost of heads against the tables of the ML-Decoder and the HSQ paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import manylabel

from benchmarks.cost import DECODER, EXPLAINED, HSQ_CASES, QUADRATIC, XL, chosen_rows, measure, paper_rows
from benchmarks.table import write_rows
from manylabel.config import Part
from manylabel.error import ConfigError


def test_the_papers_rows() -> None:
    rows = paper_rows()
    assert {row.table for row in rows} == {"1", "2", "9", "10"}
    for row in rows:
        assert row.difference is not None
        assert abs(row.difference) < EXPLAINED or row.explanation
        if row.explanation not in (QUADRATIC, XL):
            assert abs(row.difference) < 0.015
    off = [row for row in rows if row.explanation]
    assert [(row.head, row.backbone, row.labels) for row in off] == [
        (DECODER, "tresnet_m", 9600),
        (DECODER, "tresnet_m", 5000),
        ("ml_decoder", "tresnet_xl", 80),
    ]
    assert off[-1].explanation.startswith("unexplained")
    at = {(row.head, row.labels, row.queries): row.relative for row in rows if row.size == 224}
    assert at["ml_decoder", 9600, 100] == pytest.approx(6.3 / 5.8, rel=0.05)
    assert at[DECODER, 1000, 1000] == pytest.approx(14.2 / 5.7, rel=0.05)


def test_sizes_of_the_hsq_paper() -> None:
    rows = paper_rows(HSQ_CASES)
    assert len(rows) == 3
    for row in rows:
        assert row.paper_parameters is not None
        assert row.parameters / 1e6 == pytest.approx(row.paper_parameters, rel=0.02)
        assert row.explanation
        assert row.paper_gmacs is not None
        assert row.as_counted == pytest.approx(row.paper_gmacs, rel=0.006)  # 8.35, 8.57, 8.66 for 8.4, 8.6, 8.7


def test_tables_of_the_papers_are_printed_by_name() -> None:
    answer = manylabel("bench", "cost", "--table", "A.2")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("resnet10t 576") == 3
    assert "tresnet" not in answer.stdout
    assert "as counted" in answer.stdout
    assert "there is no table 'A.3'; did you mean 'A.2'" in manylabel("bench", "cost", "--table", "A.3").stderr
    assert "leave the others out" in manylabel("bench", "cost", "--table", "A.2", "--head", "hsq").stderr


def test_a_linear_layer_costs_what_it_has_weights() -> None:
    measured = measure("test_resnet", 64, "linear", {}, 10)
    assert measured.head_parameters == round(measured.head_gmacs * 1e9) + 10  # and ten biases
    assert measured.parameters > measured.head_parameters
    assert measured.gmacs > measured.head_gmacs


def test_any_combination(tmp_path: Path) -> None:
    rows = chosen_rows(["efficientnet_lite0"], ["linear", "ml_decoder"], [80, 800], [64, 96], {"groups": 40})
    assert len(rows) == 8
    assert {row.queries for row in rows} == {None, 40}
    (few,) = chosen_rows(["test_resnet"], ["ml_decoder"], [1000], [64], {"groups": 300})
    assert few.queries == 250  # four labels each
    (words,) = chosen_rows(["test_resnet"], ["ml_decoder"], [10], [64], {"query": "text", "pooling": "shared"})
    assert words.queries == 10
    write_rows(rows, tmp_path / "cost.json")
    assert json.loads((tmp_path / "cost.json").read_text())["rows"][0]["backbone"] == "efficientnet_lite0"
    with pytest.raises(ConfigError, match="did you mean 'groups'"):
        chosen_rows(["efficientnet_lite0"], ["ml_decoder"], [80], [64], {"gruops": 40})
    with pytest.raises(ConfigError, match="did you mean 'ml_decoder'"):
        chosen_rows(["efficientnet_lite0"], ["mldecoder"], [80], [64], {})
    with pytest.raises(ConfigError, match="there is no backbone"):
        chosen_rows(["efficientnet_lite9x"], ["linear"], [80], [64], {})


def test_a_neck_counts_with_the_head() -> None:
    """RM with BiT: 768 · 6144 of RS, 6144 + 1 of α, beside the linear head (Table 1: 5 M)."""
    rm = Part("rm", {"stages": ["rm1"], "summary": "mean", "normalise": False})
    (row,) = chosen_rows(["resnetv2_50x3_bit"], ["linear"], [80], [64], {}, rm)
    (alone,) = chosen_rows(["resnetv2_50x3_bit"], ["linear"], [80], [64], {})
    assert row.head == "rm + linear"
    assert row.head_parameters - alone.head_parameters == 768 * 6144 + 6144 + 1
    assert (row.head_gmacs - alone.head_gmacs) * 1e9 == pytest.approx(768 * 6144 + 6144)
    settings = ("--set", "neck.name=rm", "--set", "neck.stages=rm1", "--set", "neck.summary=mean")
    done = manylabel("bench", "cost", "--backbone", "test_resnet", "--head", "linear", "--image-size", "64", *settings)
    assert done.returncode == 0, done.stderr
    assert "rm + linear" in done.stdout

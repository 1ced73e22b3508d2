"""The registry of metrics: what may be in it, what a metric may give, and how figures are described."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manylabel
from manylabel.error import ConfigError, DataError, ManylabelError
from manylabel.evaluation import judge
from manylabel.figure import at, figure_tables, figures, headlines_first
from manylabel.labels import LabelSpace
from manylabel.metric import METRICS, Judged, Metric, describe, measured
from manylabel.metric.registry import Metrics
from manylabel.metric.upgrade import missing, with_descriptions
from manylabel.report.metric_schema import clean_figures
from manylabel.task import Classification, MultiLabel, SingleLabel

PACKAGE = Path(manylabel.__file__).parent
GIVEN = Judged(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[1, 0], [0, 1]], np.int8))


def metric(name: str = "half", **more: Any) -> Metric:
    return Metric(**{"name": name, "title": "half", "definition": "one half", "function": lambda _: 0.5, **more})


def some_results(task: Classification | None = None) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    matrix = np.eye(8, dtype=np.int8)[rng.integers(0, 8, 60)]
    scores = np.clip(0.4 * matrix + 0.6 * rng.random((60, 8)), 0, 1)
    names = LabelSpace(tuple("abcdefgh"))
    unseen = np.arange(8) >= 6
    return judge(
        scores,
        matrix,
        names,
        np.full(8, 0.5),
        fitted_here=False,
        task=task or MultiLabel(),
        unseen=unseen,
        vectors=matrix[:8].T,
    )


# --- what may be in it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (metric(), "two metrics are called 'half'"),
        (metric("other", place="half"), "both kept at 'half'"),
        (metric("labels"), "something else at 'labels'"),
        (metric("other", place="data.half"), "something else at 'data.half'"),
        (metric("other", place="a..b"), r"something else at 'a\.\.b'"),
        (metric("other", kinds=("multilabel",)), "'multilabel', which is none of multi_label"),
        (metric("other", kinds=()), "'no kind'"),
    ],
)
def test_two_cannot_stand_at_one_place_nor_at_that_of_a_fact(other: Metric, said: str) -> None:
    registry = Metrics()
    registry.add(metric())
    with pytest.raises(ConfigError, match=said):
        registry.add(other)
    assert [one.name for one in registry] == ["half"]


def test_kinds_of_tasks_may_share_a_place() -> None:
    registry = Metrics()
    registry.add(metric("a", place="half", kinds=("multi_label",)))
    registry.add(metric("b", place="half", kinds=("single_label",)))
    assert [one.name for one in registry.of("single_label")] == ["b"]
    with pytest.raises(ConfigError, match="no metric 'c'"):
        registry.get("c")


def test_every_kind_of_task_has_a_goal() -> None:
    goals = {kind: METRICS.goal(kind).name for kind in ("multi_label", "single_label", "detection")}
    assert goals == {"multi_label": "mAP", "single_label": "top-1", "detection": "AP"}
    assert (MultiLabel().goal, SingleLabel().goal) == ("mAP", "top-1")


# --- what it may give -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.inf, "0.5", np.array([0.5]), True, [0.5]])
def test_what_is_no_number_is_named(value: Any) -> None:
    with pytest.raises(ManylabelError, match="metric half gave .*; it must give a finite number, NaN or None"):
        metric(function=lambda _: value).measure(GIVEN)


@pytest.mark.parametrize("value", [61.2, -0.1])
def test_percent_are_shares(value: float) -> None:
    with pytest.raises(ManylabelError, match="gives a share between 0 and 1"):
        metric(function=lambda _: value).measure(GIVEN)
    assert metric(function=lambda _: value, unit="bits").measure(GIVEN) == value


def test_percent_nan_and_none() -> None:
    assert metric().measure(GIVEN) == 50.0
    assert math.isnan(metric(function=lambda _: math.nan).measure(GIVEN) or 0)
    assert metric(function=lambda _: None).measure(GIVEN) is None
    assert measured(GIVEN, ["mAP", "top-1", "contradictions"]) == {"mAP": 100.0, "top-1": 100.0}


def test_what_several_metrics_need_is_computed_once() -> None:
    asked = []

    def measure(judged: Judged) -> int:
        asked.append(judged)
        return len(asked)

    assert [GIVEN.once(measure), GIVEN.once(measure)] == [1, 1]


# --- results describe themselves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [MultiLabel(), SingleLabel()], ids=["multi_label", "single_label"])
def test_every_figure_is_described_and_everything_described_is_there(task: Classification) -> None:
    results = some_results(task)
    places = set(results["metrics"])
    assert places == {one.where for one in METRICS.of(task.kind) if at(results, one.where) is not None}
    assert {place for place, _ in numbers(results)} - places == {
        "labels_scored",
        "labels_total",
        "zero_shot.unseen_labels",
        "zero_shot.seen_labels",
    }
    for one in figures(results):
        assert one.value is not None
        assert all((one.title, one.heading, one.definition, one.unit))
        assert one.better in ("higher", "lower")
    names = [one.place for one in headlines_first(figures(results))]
    assert names[0] == "mAP"
    assert "label_calibration_error" in names[: names.index("mAP_interpolated")]
    tables = {table.name: table for table in figure_tables(results)}
    assert list(tables) == ["decisions", "top_k", "zero_shot"]
    assert list(tables["decisions"].columns) == ["CP", "CR", "CF1", "OP", "OR", "OF1"]
    assert all(len(row) == 6 for row in tables["decisions"].rows.values())
    assert list(tables["zero_shot"].rows)[:2] == ["Unseen (ZSL), 2 labels", "All (GZSL), 8 labels"]
    assert tables["zero_shot"].caption.startswith("2 labels that training never told")


def numbers(value: Any, before: str = "") -> Iterator[tuple[str, float]]:
    """Of results beside their words and their rows of labels."""
    for key, one in value.items():
        place = f"{before}.{key}".strip(".")
        if isinstance(one, dict) and key not in ("metrics", "tables", "definitions"):
            yield from numbers(one, place)
        elif isinstance(one, (int, float)):
            yield place, one


@pytest.mark.parametrize("task", [MultiLabel(), SingleLabel()], ids=["multi_label", "single_label"])
def test_results_of_earlier_versions_are_described_as_those_of_today(task: Classification) -> None:
    results = some_results(task)
    old = {key: value for key, value in results.items() if key not in ("metrics", "tables")}
    assert with_descriptions(old) == results
    assert with_descriptions(results) == results
    assert missing(results) == missing(old) == []
    del old["OR"]
    assert missing(old) == ["OR"]
    own = with_descriptions({"mAP": 50.0, "definitions": {"mAP": "as it was then"}})
    assert own["metrics"]["mAP"]["definition"] == "as it was then"


def test_tasks_of_earlier_versions_are_described() -> None:
    figures_of = {"AP": 12.0, "AP small": None, "mask AP": 8.0}
    results = {"tasks": {"objects": {"kind": "detection", "figures": figures_of}, "odd": {"kind": "other"}}}
    found = with_descriptions(results)["tasks"]
    assert list(found["objects"]["metrics"]) == ["AP", "AP small", "mask AP"]
    assert found["objects"]["metrics"]["mask AP"]["goal"]
    assert found["odd"] == {"kind": "other"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metrics": []}, "results.metrics must be an object"),
        ({"metrics": {"mAP": 3}}, "results.metrics.mAP must be an object"),
        ({"metrics": {"mAP": {"title": "mAP"}}}, "lacks the key 'heading'"),
        ({"metrics": {f"m{i}": {} for i in range(2000)}}, "has 2000 entries"),
        ({"mAP": 400.0}, "results.mAP is 400"),
        ({"mAP": "best"}, "results.mAP must be a number"),
        ({"top3": 3}, "results.top3 must be an object"),
        ({"tables": {}}, "results.tables lacks the key 'decisions'"),
        ({"tables": {"decisions": {"title": 3}}}, "results.tables.decisions.title must be text"),
    ],
)
def test_descriptions_from_anybody_are_checked(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        clean_figures({**some_results(), **change}, "results")


def test_a_description_cannot_take_the_place_of_a_fact_or_of_another() -> None:
    words = describe([METRICS.get("mAP")], "multi_label", {})["metrics"]["mAP"]
    for places, said in ((["labels"], "'labels', which is no figure"), (["a", "a.b"], "below 'a', which is a figure")):
        with pytest.raises(DataError, match=said):
            clean_figures({"metrics": dict.fromkeys(places, words)}, "results")


# --- nobody else knows their words ----------------------------------------------------------------------------------


def test_no_other_module_holds_words_of_a_metric() -> None:
    found = {str(path): words_in(path.read_text(encoding="utf-8"), path.suffix) for path in sources()}
    assert not {path: words for path, words in found.items() if words}


def test_no_other_module_lists_metrics() -> None:
    found = {str(path): lists_in(path.read_text(encoding="utf-8")) for path in sources() if path.suffix == ".py"}
    assert not {path: names for path, names in found.items() if names}


def test_a_module_that_does_is_found() -> None:
    definition = METRICS.get("CF1").definition
    assert words_in(f'x = "{definition[:20]}"\\\n    "{definition[20:]}"', ".py") == [definition]
    assert words_in(f"<p>{definition.replace(' ', chr(10))}</p>", ".j2") == [definition]
    assert words_in('titles = {"a": "mAP (not interpolated)"}', ".py") == ["mAP (not interpolated)"]
    assert lists_in('for name in ("CF1", "OF1"): pass') == [["CF1", "OF1"]]
    assert lists_in('x = {"CF1": 3, "calibration_error": 2}') == [["CF1", "calibration_error"]]


def sources() -> list[Path]:
    return [
        path
        for kind in ("*.py", "*.j2", "*.js")
        for path in sorted(PACKAGE.rglob(kind))
        if path.relative_to(PACKAGE).parts[0] not in ("metric", "bench")
    ]


def words_in(text: str, kind: str) -> list[str]:
    """Definitions, and titles that are more than a name, among the strings of Python or in other text."""
    words = {one.definition for one in METRICS} | {one.title for one in METRICS if re.search(r"[ ,(]", one.title)}
    words -= {one.name for one in METRICS}
    said = [node.value for node in strings(text)] if kind == ".py" else [text]
    whole = "\n".join(" ".join(each.split()) for each in said)
    return sorted(word for word in words if word in whole)


def strings(text: str) -> Iterator[ast.Constant]:
    return (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def lists_in(text: str) -> list[list[str]]:
    """Two names of metrics or more in one tuple, list, set or dict."""
    places = {one.where for one in METRICS} | {one.name for one in METRICS}
    found = []
    for node in ast.walk(ast.parse(text)):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        named = [part.value for part in parts if isinstance(part, ast.Constant) and part.value in places]
        found += [named] if len(named) > 1 else []
    return found

"""What the results of one question must hold to be compared, or asked for hard instances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from manylabel.compare.run_results import RunResults
from manylabel.error import DataError
from manylabel.metric.upgrade import with_descriptions
from manylabel.report.metric_schema import clean_figures
from manylabel.report.value import items, mapping, need, number, text, wrong

COUNTS = ("parameters", "trainable_parameters", "gmacs", "image_size")
MOST_LABELS = 100_000


def checked_results(results: Mapping[str, Any], where: str = "results") -> RunResults:
    """The results with descriptions of their figures, once all that is compared is of its kind; the rest may be anything."""
    labels = items(need(results, "labels", where), f"{where}.labels")
    if not 1 <= len(labels) <= MOST_LABELS:
        raise wrong(f"{where}.labels", f"has {len(labels)} labels")
    names = set()
    for i, label in enumerate(labels):
        place = f"{where}.labels[{i}]"
        given = mapping(label, place)
        names.add(text(need(given, "name", place), f"{place}.name"))
        number(need(given, "ap", place), f"{place}.ap", high=100.0)
        if number(need(given, "support", place), f"{place}.support", high=2.0**53) is None:
            raise wrong(f"{place}.support", "is undefined")
        _alpha(given, place)
    if len(names) < len(labels):
        raise wrong(f"{where}.labels", "names a label twice")
    for key, value in mapping(need(results, "data", where), f"{where}.data").items():
        if not isinstance(value, (str, int, float, type(None), list)):
            raise wrong(f"{where}.data.{key}", f"must be a text or a number, not {value!r:.40}")
    model = mapping(need(results, "model", where), f"{where}.model")
    text(model.get("head", ""), f"{where}.model.head")
    for key in COUNTS:
        number(model.get(key), f"{where}.model.{key}", high=1e30)
    figures, words = clean_figures(with_descriptions(results), where)
    return cast(RunResults, {**results, **figures, **words})


def check_scores(shape: tuple[int, ...], results: Mapping[str, Any], where: str) -> None:
    if shape[1] != len(results["labels"]):
        raise DataError(f"{where} has scores of {shape[1]} labels, its results are of {len(results['labels'])}")


def _alpha(label: Mapping[str, Any], where: str) -> None:
    number(label.get("alpha"), f"{where}.alpha", high=math.inf)
    for name, value in mapping(label.get("alphas") or {}, f"{where}.alphas").items():
        number(value, f"{where}.alphas.{name}")
    if not isinstance(label.get("unseen", False), bool):
        raise wrong(f"{where}.unseen", "must be true or false")

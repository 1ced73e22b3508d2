"""What results say of their figures, as anybody may have written it: each of its kind, with the figures themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from manylabel.core.described import Described, TableWords, Words
from manylabel.core.results import FigureTree
from manylabel.figure import PERCENT, put
from manylabel.metric.registry import TAKEN
from manylabel.report.value import items, mapping, need, need_text, number, text, wrong

MOST_METRICS = 1000


def clean_figures(given: Mapping[str, Any], where: str) -> tuple[FigureTree, Described]:
    """(every figure at its place, what is said of them), checked."""
    described = clean_metrics(given, where)
    clean: FigureTree = {}
    for place, told in described["metrics"].items():
        put(clean, place, figure(_there(given, place, where), f"{where}.{place}", told["unit"]))
    return clean, described


def clean_metrics(given: Mapping[str, Any], where: str) -> Described:
    """What is said of each figure, and of each table that they form."""
    metrics = mapping(need(given, "metrics", where), f"{where}.metrics")
    if len(metrics) > MOST_METRICS:
        raise wrong(f"{where}.metrics", f"has {len(metrics)} entries; there may be {MOST_METRICS}")
    found = {
        text(place, f"{where}.metrics"): _metric(told, f"{where}.metrics.{place}") for place, told in metrics.items()
    }
    places = list(found)
    for place in places:
        if any(other.startswith(f"{place}.") for other in places):
            raise wrong(f"{where}.metrics", f"has figures below {place!r:.60}, which is a figure itself")
        if place.split(".")[0] in TAKEN:
            raise wrong(f"{where}.metrics", f"describes {place!r:.60}, which is no figure")
    tables = mapping(given.get("tables") or {}, f"{where}.tables")
    used = dict.fromkeys(told["table"] for told in found.values() if told.get("table"))
    return {
        "metrics": found,
        "tables": {name: _table(need(tables, name, f"{where}.tables"), f"{where}.tables.{name}") for name in used},
    }


def figure(value: Any, where: str, unit: str) -> float | None:
    return number(value, where, high=100.0) if unit == PERCENT else number(value, where, low=-math.inf)


def _metric(value: Any, where: str) -> Words:
    given = mapping(value, where)
    clean: Words = {
        "title": need_text(given, "title", where),
        "heading": need_text(given, "heading", where),
        "definition": need_text(given, "definition", where),
        "unit": need_text(given, "unit", where),
        "better": need_text(given, "better", where),
        "headline": given.get("headline") is True,
        "goal": given.get("goal") is True,
    }
    if "table" in given:
        clean["table"] = need_text(given, "table", where)
        clean["row"] = need_text(given, "row", where)
        clean["column"] = need_text(given, "column", where)
    return clean


def _table(value: Any, where: str) -> TableWords:
    given = mapping(value, where)
    title, caption, rows = (need_text(given, key, where) for key in ("title", "caption", "rows"))
    columns = items(given.get("columns", []), f"{where}.columns")
    if len(columns) > MOST_METRICS:
        raise wrong(f"{where}.columns", f"has {len(columns)} entries; there may be {MOST_METRICS}")
    return {
        "title": title,
        "caption": caption,
        "rows": rows,
        "columns": [text(column, f"{where}.columns") for column in columns],
    }


def _there(given: Mapping[str, Any], place: str, where: str) -> Any:
    *before, last = place.split(".")
    found: Any = given
    for key in before:
        found, where = mapping(need(found, key, where), f"{where}.{key}"), f"{where}.{key}"
    return need(found, last, where)

"""docs/metrics.md says what every figure is."""

from __future__ import annotations

import re

from doc_blocks import HERE, table_rows

from manylabel.metric import METRICS, Metric

PAGE = HERE / "docs" / "metrics.md"


def told(text: str) -> set[str]:
    """What the first cells of the table of figures name."""
    return set(re.findall(r"`([^`]+)`", " ".join(table_rows(text, "figure"))))


def is_told(metric: Metric, names: set[str]) -> bool:
    """By its place, or by what it is a part of."""
    return any(metric.where == name or metric.where.startswith(f"{name}.") for name in names)


def test_every_metric_has_a_row() -> None:
    names = told(PAGE.read_text(encoding="utf-8"))
    assert [metric.where for metric in METRICS if not is_told(metric, names)] == []
    assert not is_told(METRICS.get("mAP"), names - {"mAP"})


def test_every_row_is_of_a_metric() -> None:
    names = told(PAGE.read_text(encoding="utf-8"))
    assert [name for name in names if not any(is_told(metric, {name}) for metric in METRICS)] == []

"""Results whose keys nobody can list, for metrics choose them: results.json of one task, its figures, metrics.jsonl."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

FigureTree = dict[str, "int | float | FigureTree | None"]  # figures at their places; None where undefined
Results = dict[
    str, Any
]  # results.json: figures at their places beside facts; report/schema.py checks what is read of it
HistoryRow = dict[str, Any]  # a line of metrics.jsonl: `epoch`, and what whoever trains notes of it by name


class JudgedOn(TypedDict):
    """The `data` of results.json."""

    name: str
    split: str
    images: float
    bad_images: NotRequired[float | None]

"""What results say of their own figures: the sections `metrics` and `tables` of results.json."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Words(TypedDict):
    """What results say of one of their figures."""

    title: str
    heading: str
    definition: str
    unit: str
    better: str  # higher or lower; a stranger's file may hold any word
    headline: bool
    goal: NotRequired[bool]
    table: NotRequired[str]
    row: NotRequired[str]
    column: NotRequired[str]


class TableWords(TypedDict):
    title: str
    caption: str
    rows: str
    columns: list[str]


class Described(TypedDict):
    """The sections of results that say what its figures are, by place (or name), and the tables they form."""

    metrics: dict[str, Words]
    tables: dict[str, TableWords]

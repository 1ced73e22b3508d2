"""Figures of results as the results themselves describe them (`metrics`, `tables`): what shows them needs no other words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PERCENT = "percent"


@dataclass(frozen=True)
class Figure:
    """One number and what is said of it."""

    place: str  # in the results, with dots between the keys
    value: float | None  # None where it is undefined
    title: str
    heading: str
    definition: str
    unit: str
    better: str
    headline: bool
    goal: bool  # what models are compared by
    table: str
    row: str
    column: str

    @property
    def in_percent(self) -> bool:
        return self.unit == PERCENT

    @property
    def alone(self) -> bool:
        """Neither a headline nor in a table."""
        return not self.headline and not self.table


@dataclass(frozen=True)
class FigureTable:
    """Figures that are read together."""

    name: str
    title: str
    caption: str
    rows_are: str
    columns: dict[str, str]  # title → what it means
    rows: dict[str, dict[str, Figure]]  # by column


def at(values: Mapping[str, Any], place: str) -> Any:
    """What is at this place, None where nothing is; all of it at none."""
    found: Any = values
    for key in place.split(".") if place else ():
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def put(values: dict[str, Any], place: str, value: Any) -> None:
    *before, last = place.split(".")
    for key in before:
        values = values.setdefault(key, {})
    values[last] = value


def figures(results: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> list[Figure]:
    """All that the results describe, in their order. `values`: by name, where the figures do not stand in the results."""
    return [
        Figure(
            place,
            at(results, place) if values is None else values.get(place),
            told["title"],
            told["heading"],
            told["definition"],
            told["unit"],
            told["better"],
            told["headline"],
            told.get("goal", False),
            told.get("table", ""),
            told.get("row", ""),
            told.get("column", ""),
        )
        for place, told in results["metrics"].items()
    ]


def headlines_first(found: Iterable[Figure]) -> list[Figure]:
    return sorted(found, key=lambda figure: not figure.headline)


def task_figures(tasks: Mapping[str, Mapping[str, Any]]) -> list[tuple[Figure, dict[str, Figure]]]:
    """Each figure of any of these tasks, headlines first, with what it is for every task that has it."""
    found: dict[str, dict[str, Figure]] = {}
    for name, task in tasks.items():
        for one in figures(task, task["figures"]):
            found.setdefault(one.place, {})[name] = one
    rows = [(next(iter(of.values())), of) for of in found.values()]
    return sorted(rows, key=lambda row: not row[0].headline)


def figure_tables(results: Mapping[str, Any]) -> list[FigureTable]:
    """The tables that figures of the results form, in their order."""
    tables: dict[str, FigureTable] = {}
    for figure in figures(results):
        if not figure.table:
            continue
        told = results["tables"][figure.table]
        columns = dict.fromkeys(told["columns"], "")
        made = FigureTable(figure.table, told["title"], told["caption"], told["rows"], columns, {})
        table = tables.setdefault(figure.table, made)
        table.columns[figure.column] = table.columns.get(figure.column) or figure.definition
        table.rows.setdefault(figure.row, {})[figure.column] = figure
    return list(tables.values())


def number(value: float | None, digits: int = 2) -> str:
    """For a table; an en dash where it is undefined."""
    return "–" if value is None else f"{value:.{digits}f}"


def with_unit(value: float | None, unit: str) -> str:
    """The same in a column of percentages, where another unit is said."""
    return number(value) if unit == PERCENT or value is None else f"{value:.4g} {unit}"

"""Figures in a model card: a list, and a table of each group of them, from what results say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from manylabel.figure import figure_tables, figures, headlines_first, task_figures, with_unit


def figure_list(results: Mapping[str, Any]) -> str:
    """Headlines first, then figures that stand alone, then the tables."""
    single = [one for one in headlines_first(figures(results)) if one.headline or one.alone]
    parts = [_table(("figure", "value"), ((one.title, with_unit(one.value, one.unit)) for one in single))]
    for table in figure_tables(results):
        rows = (
            (name, *(with_unit(row[key].value, row[key].unit) if key in row else "" for key in table.columns))
            for name, row in table.rows.items()
        )
        parts.append(f"{table.title}: {table.caption}\n\n{_table((table.rows_are, *table.columns), rows)}")
    return "\n\n".join(parts)


def task_list(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each figure, a column for each task."""
    rows = (
        (one.title, *(with_unit(of[name].value, one.unit) if name in of else "" for name in tasks))
        for one, of in task_figures(tasks)
    )
    return _table(("on the val images, percent", *tasks), rows)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = list(header)
    lines = [cells, ["---"] * len(cells), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""Figures of several tasks as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manylabel.compact import compact


def print_tasks(results: dict[str, Any]) -> None:
    """A row for each figure and a column for each task."""
    tasks = results["tasks"]
    table = Table(title=results["title"])
    table.add_column("figure")
    for name in tasks:
        table.add_column(name, justify="right")
    figures = list(dict.fromkeys(figure for task in tasks.values() for figure in task["figures"]))
    for figure in figures:
        table.add_row(f"{figure} (percent)", *(_number(task["figures"].get(figure)) for task in tasks.values()))
    table.add_section()
    table.add_row("images", *(f"{task['images']} {task['split']}" for task in tasks.values()))
    if results["model"]["experts"]:
        table.add_row("experts of a token", *(str(task["experts"]) for task in tasks.values()))
    table.add_row("parameters in use", *(compact(task["active_parameters"]) for task in tasks.values()))
    table.add_row("multiply-adds of the transformer", *(compact(1e9 * task["gmacs"]) for task in tasks.values()))
    table.add_row("multiply-adds of the head", *(compact(1e9 * task["head_gmacs"]) for task in tasks.values()))
    Console().print(table)
    for name, task in tasks.items():
        for note in task["notes"]:
            Console().print(Text(f"{name}: {note}"))


def print_task_comparison(comparison: dict[str, Any]) -> None:
    """A row for each method: its tasks' figures over seeds, their mean, and what a prediction uses."""
    out = Console(highlight=False)
    columns = [f"{task} {figure}" for task, figure in comparison["columns"]]
    table = _methods("on the val images, percent", "seeds", *columns, "mean", "change")
    for row in comparison["methods"]:
        change = "–" if row["change"] is None else f"{row['change']:+.2f}"
        cells = [_spread(cell) for cell in row["figures"]]
        table.add_row(Text(row["name"]), str(len(row["runs"])), *cells, _number(row["mean"]), change)
    out.print(table)
    table = _methods("in use, by task", "task", "experts", "parameters", "multiply-adds", "of its head", "seconds")
    for row in comparison["methods"]:
        seconds = "–" if row["seconds"] is None else f"{row['seconds']:.0f}"
        for number, (task, cost) in enumerate(row["tasks"].items()):
            used = (
                ", ".join(map(str, cost["experts"])),
                compact(cost["active_parameters"]),
                compact(1e9 * cost["gmacs"]),
                compact(1e9 * cost["head_gmacs"]),
            )
            table.add_row(Text("" if number else row["name"]), task, *used, "" if number else seconds)
    out.print(table)


def _methods(title: str, *headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0))
    table.add_column("method", overflow="fold", min_width=12)
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _spread(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "–"
    return f"{cell['mean']:.2f}" + ("" if cell["deviation"] is None else f" ± {cell['deviation']:.2f}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

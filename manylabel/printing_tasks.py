"""Figures of several tasks as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


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
    table.add_row("val images", *(str(task["images"]) for task in tasks.values()))
    if results["model"]["experts"]:
        table.add_row("experts of a token", *(str(task["experts"]) for task in tasks.values()))
    table.add_row("parameters in use", *(f"{task['active_parameters'] / 1e6:.2f} M" for task in tasks.values()))
    table.add_row("G MAC of the transformer", *(f"{task['gmacs']:.2f}" for task in tasks.values()))
    Console().print(table)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

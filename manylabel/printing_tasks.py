"""Figures of several tasks as tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from manylabel.compact import compact
from manylabel.core.task_comparison import Spread, TaskComparison
from manylabel.core.task_results import TaskResults
from manylabel.figure import number, task_figures
from manylabel.printing import print_warnings
from manylabel.runtime.rich_console import Terminal


def print_tasks(results: Mapping[str, Any]) -> None:
    """A row for each figure and a column for each task."""
    tasks: dict[str, TaskResults] = results["tasks"]
    warnings = (f"{name}: {warning}" for name, task in tasks.items() for warning in task.get("warnings", ()))
    print_warnings(Terminal(), warnings)
    table = Table(title=results["title"])
    table.add_column("figure")
    for name in tasks:
        table.add_column(name, justify="right")
    for one, of in task_figures(tasks):
        cells = (number(of[name].value) if name in of else "–" for name in tasks)
        table.add_row(Text(f"{one.title}, {one.unit}"), *cells)
    table.add_section()
    table.add_row("images", *(f"{task['images']} {task['split']}" for task in tasks.values()))
    if results["model"]["experts"]:
        table.add_row("experts of a token", *(str(task["experts"]) for task in tasks.values()))
    table.add_row("parameters in use", *(compact(task["active_parameters"]) for task in tasks.values()))
    of_backbone = (task.get("backbone_parameters") for task in tasks.values())
    table.add_row("… of the backbone", *("–" if used is None else compact(used) for used in of_backbone))
    table.add_row("multiply-adds of the backbone", *(compact(1e9 * task["gmacs"]) for task in tasks.values()))
    table.add_row("multiply-adds of the head", *(compact(1e9 * task["head_gmacs"]) for task in tasks.values()))
    Terminal().print(table)
    for name, task in tasks.items():
        for note in task["notes"]:
            Terminal().print(Text(f"{name}: {note}"))


def print_task_comparison(comparison: TaskComparison) -> None:
    """A row for each method: its tasks' figures over seeds, their mean, and what a prediction uses."""
    out = Terminal()
    print_warnings(out, comparison["warnings"])
    columns = [f"{task} {figure}" for task, figure in comparison["columns"]]
    table = _methods("on the val images, percent", "seeds", *columns, "mean", "change")
    for row in comparison["methods"]:
        change = "–" if row["change"] is None else f"{row['change']:+.2f}"
        cells = [_spread(cell) for cell in row["figures"]]
        table.add_row(Text(row["name"]), str(len(row["runs"])), *cells, number(row["mean"]), change)
    out.print(table)
    if comparison["more"]:
        table = Table(box=box.SIMPLE_HEAD, title="other figures on the val images, percent", padding=(0, 1, 0, 0))
        table.add_column("figure", overflow="fold", min_width=12)
        for row in comparison["methods"]:
            table.add_column(Text(row["name"]), justify="right", overflow="fold")
        for i, (task, figure) in enumerate(comparison["more"]):
            title = Text(f"{task}: {comparison['metrics'][task][figure]['title']}")
            table.add_row(title, *(_spread(row["more"][i]) for row in comparison["methods"]))
        out.print(table)
    used = ("parameters", "of the backbone", "multiply-adds", "of its head")
    table = _methods("in use, by task", "task", "experts", *used, "seconds")
    for row in comparison["methods"]:
        seconds = "–" if row["seconds"] is None else f"{row['seconds']:.0f}"
        for i, (task, cost) in enumerate(row["tasks"].items()):
            in_use = (
                ", ".join(map(str, cost["experts"])),
                compact(cost["active_parameters"]),
                "–" if cost["backbone_parameters"] is None else compact(cost["backbone_parameters"]),
                compact(1e9 * cost["gmacs"]),
                compact(1e9 * cost["head_gmacs"]),
            )
            table.add_row(Text("" if i else row["name"]), task, *in_use, "" if i else seconds)
    out.print(table)
    for note in comparison["notes"]:
        out.print(f"  · {note}", soft_wrap=True)


def _methods(title: str, *headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0))
    table.add_column("method", overflow="fold", min_width=12)
    for heading in headings:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _spread(cell: Spread | None) -> str:
    if cell is None:
        return "–"
    return f"{cell['mean']:.2f}" + ("" if cell["deviation"] is None else f" ± {cell['deviation']:.2f}")

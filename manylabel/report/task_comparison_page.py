"""A comparison of runs with several tasks → one HTML file that needs nothing else, and its figure as a PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manylabel.core.task_comparison import TaskComparison
from manylabel.report.drawing import axes_in, colour, embedded, plain
from manylabel.report.page import fill
from manylabel.storage.atomic import write_text

PLANE = (
    "The first task against the mean of the others' figures, a point for each method that has all of them; the larger it "
    "is, the more multiply-adds its predictions need."
)


def write_task_comparison_page(comparison: TaskComparison, out: Path) -> Path:
    """The page in the file `out`; the figure goes to a folder `figures` beside it."""
    picture, plane = (out.parent / "figures" / name for name in ("tasks.png", "plane.png"))
    picture.parent.mkdir(parents=True, exist_ok=True)
    _draw(comparison, picture)
    drawn = [("Every figure of every method; dots are seeds.", picture)]
    points = places(comparison)
    if points:
        _draw_plane(comparison, points, plane)
        drawn.append((PLANE, plane))
    tasks = list(dict.fromkeys(task for row in comparison["methods"] for task in row["tasks"]))
    figures = embedded(drawn)
    page = fill(
        "task_comparison.html.j2", ("style.css", "comparison.css"), (), {}, **comparison, tasks=tasks, figures=figures
    )
    write_text(out, page)
    return out


def _draw(comparison: TaskComparison, path: Path) -> None:
    columns, methods = comparison["columns"], comparison["methods"]
    with axes_in(path, 8, 1.2 + 0.28 * len(columns) * len(methods)) as axes:
        height = 0.8 / len(methods)
        for number, method in enumerate(methods):
            for place, cell in enumerate(method["figures"]):
                if cell is None:
                    continue
                y = place + (number - (len(methods) - 1) / 2) * height
                label = plain(method["name"]) if cell is next(c for c in method["figures"] if c is not None) else None
                axes.barh(y, cell["mean"], height=0.9 * height, color=colour(number), alpha=0.75, label=label)
                axes.plot(cell["seeds"], np.full(len(cell["seeds"]), y), "o", color="black", markersize=3)
        axes.set_yticks(range(len(columns)), [plain(f"{task}: {figure}") for task, figure in columns])
        axes.invert_yaxis()
        axes.set_xlabel("percent")
        axes.legend(fontsize=8, frameon=False, loc="lower right")


def places(comparison: TaskComparison) -> dict[str, tuple[float, float, float]]:
    """Method → (mean of the other tasks' figures, mean of the first task's, 10⁹ multiply-adds of all tasks together)."""
    columns = comparison["columns"]
    first = [task == columns[0][0] for task, _ in columns]
    if all(first):
        return {}
    found = {}
    for method in comparison["methods"]:
        cells = [cell["mean"] for cell in method["figures"] if cell is not None]
        if len(cells) == len(columns):
            values, own = np.array(cells), np.array(first)
            cost = sum(used["gmacs"] + used["head_gmacs"] for used in method["tasks"].values())
            found[method["name"]] = (float(values[~own].mean()), float(values[own].mean()), cost)
    return found


def _draw_plane(comparison: TaskComparison, points: dict[str, tuple[float, float, float]], path: Path) -> None:
    columns = comparison["columns"]
    others = ", ".join(f"{task} {figure}" for task, figure in columns if task != columns[0][0])
    most = max(max(cost for *_, cost in points.values()), 1e-12)
    with axes_in(path, 6, 4.2) as axes:
        for number, (name, (x, y, cost)) in enumerate(points.items()):
            axes.scatter([x], [y], s=30 + 270 * cost / most, color=colour(number), alpha=0.75, label=plain(name))
        axes.set_xlabel(plain(f"mean of {others}, percent"))
        axes.set_ylabel(plain(f"{columns[0][0]}: {columns[0][1]}, percent"))
        axes.legend(fontsize=8, frameon=False)

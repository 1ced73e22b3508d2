"""A comparison of runs with several tasks → one HTML file that needs nothing else, and its figure as a PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manylabel.core.task_comparison import TaskComparison
from manylabel.report.drawing import axes_in, colour, embedded, plain
from manylabel.report.page import fill
from manylabel.storage.atomic import write_text


def write_task_comparison_page(comparison: TaskComparison, out: Path) -> Path:
    """The page in the file `out`; the figure goes to a folder `figures` beside it."""
    picture = out.parent / "figures" / "tasks.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    _draw(comparison, picture)
    tasks = list(dict.fromkeys(task for row in comparison["methods"] for task in row["tasks"]))
    figures = embedded([("Every figure of every method; dots are seeds.", picture)])
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

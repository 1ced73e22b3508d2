"""manylabel compare: several runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manylabel.cli.common import Overwrite, refuse_given
from manylabel.error import ManylabelError
from manylabel.runtime.terminal import echo
from manylabel.storage.output import check_outputs

WRITES = (
    "comparison.html",
    "comparison.json",
    "figures.csv",
    "labels.csv",
    "figures/[0-9][0-9]-*.png",
    "figures/tasks.png",
    "figures/plane.png",
)
FEWEST = 100  # draws: the ends of a 95 % interval need some beyond them


def compare(
    ctx: typer.Context,
    runs: Annotated[
        list[Path], typer.Argument(help="folders of finished runs, the baseline first; seeds are averaged")
    ],
    out: Annotated[Path, typer.Option(help="folder for comparison.html, its figures, JSON and CSV")] = Path(
        "comparison"
    ),
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="two labels whose gap is shown, e.g. cow,horse; may be repeated"),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="what to call a method, in the order of the runs; may be repeated")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="of runs with several tasks: compare this one as runs of its own")
    ] = None,
    resamples: Annotated[int, typer.Option(help="draws of the images for intervals; 0 = no intervals", min=0)] = 1000,
    overwrite: Overwrite = False,
) -> None:
    """Which run is better, for which labels, how surely, and at what cost.

    Runs that differ in their seed only are one method (their data needs a split column, so that all are judged on the
    same images). Differences are to the first method, with 95 % intervals over
    images drawn anew, and the labels that lose are named.

    \b
    manylabel compare runs/linear runs/hsq
    manylabel compare runs/q2l-* runs/hsq-* --pair cow,horse --out runs/q2l-and-hsq
    manylabel compare runs/dense-* runs/several-*          models of several tasks: every task's figures
    manylabel compare runs/alone runs/several --task labels
    """
    from manylabel.compare import compare_runs, methods_of, read_run
    from manylabel.compare.figure_file import write_figure_file
    from manylabel.compare.figures import draw_figures
    from manylabel.compare.label_file import write_label_file
    from manylabel.printing_comparison import print_comparison
    from manylabel.report.comparison_page import losing, write_comparison_page
    from manylabel.report.tasks_file import has_tasks
    from manylabel.storage.atomic import write_json

    check_outputs(out, WRITES, overwrite)
    if task is None and all(has_tasks(run) for run in runs):
        refuse_given(
            ctx, ("pair", "resamples"), "not for models of several tasks, whose figures have no intervals; leave it out"
        )
        _compare_tasks(runs, out, name or [])
        return
    if 0 < resamples < FEWEST:
        raise ManylabelError(f"--resamples {resamples}: intervals need {FEWEST} draws or more; 0 = no intervals")
    read = [read_run(run, task=task if has_tasks(run) else None) for run in runs]
    comparison = compare_runs(methods_of(read, name or []), _pairs(pair or []), resamples)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "comparison.json", comparison)
    write_figure_file(comparison, out / "figures.csv")
    write_label_file(comparison, out / "labels.csv")
    figures = draw_figures(comparison, out / "figures")
    page = write_comparison_page(comparison, figures, out / "comparison.html")
    print_comparison(comparison, losing)
    echo(f"page: {page}")


def _compare_tasks(runs: list[Path], out: Path, names: list[str]) -> None:
    from manylabel.compare import compare_tasks, methods_of, read_run
    from manylabel.printing_tasks import print_task_comparison
    from manylabel.report.task_comparison_page import write_task_comparison_page
    from manylabel.storage.atomic import write_json

    comparison = compare_tasks(methods_of([read_run(run, ("tasks", "model")) for run in runs], names))
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "comparison.json", comparison)
    page = write_task_comparison_page(comparison, out / "comparison.html")
    print_task_comparison(comparison)
    echo(f"page: {page}")


def _pairs(given: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in given:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) != 2 or not all(parts):
            raise ManylabelError(f"--pair takes two labels with a comma between them, not {text!r}")
        pairs.append((parts[0], parts[1]))
    return pairs

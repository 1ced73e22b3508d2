"""Runs with several tasks beside each other: every task's figures over seeds, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manylabel.compare.runs import Method, Run, never_trained_notes, warnings_about
from manylabel.core.described import Words
from manylabel.core.task_comparison import Spread, TaskComparison, TaskCost, TaskMethod
from manylabel.error import DataError
from manylabel.report.tasks_file import check_results
from manylabel.storage.output import MADE_BY

SCHEMA = 1


def compare_tasks(methods: Sequence[Method]) -> TaskComparison:
    """The first method is the one that the others are compared with, on the figures that both have."""
    columns: dict[tuple[str, str], None] = {}
    more: dict[tuple[str, str], None] = {}
    for method in methods:
        for run in method.runs:
            check_results(run.results, run.folder)
            for task, found in run.results["tasks"].items():
                for figure, told in found["metrics"].items():
                    (columns if told["goal"] or figure == found["goal"] else more)[task, figure] = None
    if not columns:
        raise DataError("these runs have no figures that can be compared")
    _same_data(methods)
    rows = [_row(method, list(columns), list(more)) for method in methods]
    for row in rows:
        row["change"] = _change(rows[0]["figures"], row["figures"])
    return {
        "schema": SCHEMA,
        "made_by": MADE_BY,
        "warnings": warnings_about(methods),
        "notes": never_trained_notes(methods),
        "columns": [list(column) for column in columns],
        "more": [list(column) for column in more],
        "metrics": _descriptions(methods),
        "methods": rows,
    }


def _same_data(methods: Sequence[Method]) -> None:
    """Figures on other images say nothing about which model is better."""
    seen: dict[str, tuple[tuple[str, int], str]] = {}
    which: dict[str, tuple[str, str]] = {}
    for run in (run for method in methods for run in method.runs):
        for task, found in run.results["tasks"].items():
            images = (str(found["data"]), int(found["images"]))
            before, folder = seen.setdefault(task, (images, str(run.folder)))
            if images != before:
                raise DataError(
                    f"task {task} was judged on {before[1]} images of {before[0]} in {folder}, and on {images[1]} of "
                    f"{images[0]} in {run.folder}; compare runs on the same images"
                )
            judged = found.get("judged")  # results of earlier versions do not tell
            if judged is None:
                continue
            known, elsewhere = which.setdefault(task, (judged, str(run.folder)))
            if judged != known:
                raise DataError(
                    f"task {task} was judged on other images of {images[0]} in {run.folder} than in {elsewhere}: a split "
                    "depends on the seed where the data has none; name one for all runs "
                    f"(--set tasks.{task}.data.split_file=…)"
                )


def _descriptions(methods: Sequence[Method]) -> dict[str, dict[str, Words]]:
    """What the runs say of the figures of each task."""
    told: dict[str, dict[str, Words]] = {}
    for run in (run for method in methods for run in method.runs):
        for task, found in run.results["tasks"].items():
            told[task] = {**found["metrics"], **told.get(task, {})}
    return told


def _row(method: Method, columns: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]]) -> TaskMethod:
    figures = [_over_seeds(method, task, figure) for task, figure in columns]
    means = [cell["mean"] for cell in figures if cell is not None]
    seconds = [run.seconds for run in method.runs if run.seconds]
    tasks = {task: None for run in method.runs for task in run.results["tasks"]}
    return {
        "name": method.name,
        "runs": [str(run.folder) for run in method.runs],
        "figures": figures,
        "more": [_over_seeds(method, task, figure) for task, figure in more],
        "mean": float(np.mean(means)) if len(means) == len(columns) else None,  # of runs that have all of them
        "tasks": {task: _cost(method, task) for task in tasks},
        "parameters": method.runs[0].results["model"]["parameters"],
        "seconds": float(np.mean(seconds)) if seconds else None,
        "change": None,  # until all methods have their figures
    }


def _over_seeds(method: Method, task: str, figure: str) -> Spread | None:
    found = [_figure(run, task, figure) for run in method.runs]
    values = [float(value) for value in found if value is not None]
    if not values:
        return None
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "deviation": spread, "seeds": values}


def _figure(run: Run, task: str, figure: str) -> float | None:
    told = run.results["tasks"].get(task)
    return None if told is None else told["figures"].get(figure)


def _cost(method: Method, task: str) -> TaskCost:
    told = [run.results["tasks"][task] for run in method.runs if task in run.results["tasks"]]
    backbone = [one["backbone_parameters"] for one in told if "backbone_parameters" in one]
    return {
        "experts": [one["experts"] for one in told],
        "active_parameters": float(np.mean([one["active_parameters"] for one in told])),
        "backbone_parameters": float(np.mean(backbone)) if backbone else None,
        "gmacs": float(np.mean([one["gmacs"] for one in told])),
        "head_gmacs": float(np.mean([one["head_gmacs"] for one in told])),
    }


def _change(baseline: Sequence[Spread | None], own: Sequence[Spread | None]) -> float | None:
    """Mean difference of the figures that both methods have, in points."""
    both = [b["mean"] - a["mean"] for a, b in zip(baseline, own, strict=True) if a is not None and b is not None]
    return float(np.mean(both)) if both else None

"""What the results of several tasks must hold. They are checked here once; the page and the comparison can trust them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from manylabel.core.task_results import SeveralResults
from manylabel.metric.upgrade import with_descriptions
from manylabel.report.metric_schema import clean_metrics
from manylabel.report.metric_schema import figure as figure_of
from manylabel.report.value import items, mapping, need, number, text, wrong

MOST_TASKS = 100
MOST_CELLS = 1000  # rows or columns of one picture: more of them are not readable, and take minutes to draw
LARGEST = 1e39  # figures are of 32 bits; an axis for far larger ones cannot be drawn
COSTS = ("active_parameters", "gmacs", "head_gmacs")


def clean_task_results(results: Mapping[str, Any], where: str = "results") -> SeveralResults:
    """Checked results whose tasks describe their figures, as those of earlier versions do not."""
    mapping(need(results, "tasks", where), f"{where}.tasks")
    described = with_descriptions(results)
    tasks = {
        name: _described(mapping(task, f"{where}.tasks.{name}"), f"{where}.tasks.{name}")
        for name, task in described["tasks"].items()
    }
    clean = {**described, "tasks": tasks}
    check_task_results(clean, where)
    return cast(SeveralResults, clean)


def _described(task: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    words = clean_metrics({"metrics": {}, **task}, where)
    given = mapping(need(task, "figures", where), f"{where}.figures")
    found = {
        name: figure_of(need(given, name, f"{where}.figures"), f"{where}.figures.{name}", told["unit"])
        for name, told in words["metrics"].items()
    }
    return {**task, "figures": {**given, **found}, **words}


def check_task_results(results: Mapping[str, Any], where: str = "results") -> None:
    """Stop unless everything that is shown is there and of its kind; what nobody shows may be anything."""
    model = mapping(need(results, "model", where), f"{where}.model")
    for key in ("parameters",):
        whole(need(model, key, f"{where}.model"), f"{where}.model.{key}")
    tasks = mapping(need(results, "tasks", where), f"{where}.tasks")
    if not 1 <= len(tasks) <= MOST_TASKS:
        raise wrong(f"{where}.tasks", f"has {len(tasks)} entries")
    for name, task in tasks.items():
        _task(mapping(task, f"{where}.tasks.{name}"), f"{where}.tasks.{name}")


def check_shown_results(results: Mapping[str, Any], where: str = "results") -> None:
    """The same, with what only a page shows."""
    check_task_results(results, where)
    for key in ("title", "created"):
        text(need(results, key, where), f"{where}.{key}")
    model = results["model"]
    for key in ("layers", "width", "patch"):
        if key in model:
            whole(model[key], f"{where}.model.{key}")
    whole(need(model, "experts", f"{where}.model"), f"{where}.model.experts")
    text(model.get("backbone", ""), f"{where}.model.backbone")
    items(need(model, "sparse_layers", f"{where}.model"), f"{where}.model.sparse_layers")
    for name, task in results["tasks"].items():
        place = f"{where}.tasks.{name}"
        text(need(task, "split", place), f"{place}.split")
        for note in items(need(task, "notes", place), f"{place}.notes"):
            text(note, f"{place}.notes")
    for name, found in mapping(results.get("routing") or {}, f"{where}.routing").items():
        if name not in results["tasks"]:
            raise wrong(f"{where}.routing", f"names {name!r:.60}, which is no task")
        _routing(mapping(found, f"{where}.routing.{name}"), f"{where}.routing.{name}")
    _settling(mapping(results.get("settling") or {}, f"{where}.settling"), f"{where}.settling")


def check_history(history: Any, where: str = "history") -> None:
    for i, row in enumerate(items(history, where)):
        given, place = mapping(row, f"{where}[{i}]"), f"{where}[{i}]"
        figure(need(given, "epoch", place), f"{place}.epoch")
        figure(given.get("step", 0), f"{place}.step")
        for key in ("loss", "held_out", "k", "conflict", "pull"):
            for name, value in mapping(given.get(key, {}), f"{place}.{key}").items():
                figure(value, f"{place}.{key}.{name}")
        for name, found in mapping(given.get("judged", {}), f"{place}.judged").items():
            for goal, value in mapping(found, f"{place}.judged.{name}").items():
                number(value, f"{place}.judged.{name}.{goal}", low=-1e30, high=1e30)


def whole(value: Any, where: str) -> None:
    figure(value, where)
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise wrong(where, f"must be a whole number, not {value!r:.40}")


def figure(value: Any, where: str) -> None:
    """A number that 32 bits can hold, or NaN: a loss may have been any."""
    if value is None:
        raise wrong(where, "must be a number, not null")
    number(value, where, low=-LARGEST, high=LARGEST)


def _task(task: Mapping[str, Any], where: str) -> None:
    for key in ("kind", "data", "goal"):
        text(need(task, key, where), f"{where}.{key}")
    for key in ("images", "labels", "experts"):
        whole(need(task, key, where), f"{where}.{key}")
    for key in COSTS:
        figure(need(task, key, where), f"{where}.{key}")
    if "backbone_parameters" in task:
        figure(task["backbone_parameters"], f"{where}.backbone_parameters")
    if task.get("bad_images") is not None:
        whole(task["bad_images"], f"{where}.bad_images")
    for i, row in enumerate(items(task.get("never_trained", []), f"{where}.never_trained")):
        place = f"{where}.never_trained[{i}]"
        text(need(mapping(row, place), "name", place), f"{place}.name")
        number(need(row, "ap", place), f"{place}.ap", high=100.0)
    for name, value in mapping(need(task, "figures", where), f"{where}.figures").items():
        if name not in mapping(task.get("metrics") or {}, f"{where}.metrics"):
            number(value, f"{where}.figures.{name}", high=100.0)


def _routing(found: Mapping[str, Any], where: str) -> None:
    layers = table(need(found, "layers", where), f"{where}.layers")
    numbers = items(need(found, "numbers", where), f"{where}.numbers")
    if len(numbers) != len(layers):
        raise wrong(f"{where}.numbers", f"has {len(numbers)} entries for {len(layers)} layers")
    for n in numbers:
        whole(n, f"{where}.numbers")
    if found.get("by_label"):
        names = items(need(found, "labels", where), f"{where}.labels")
        if len(names) != len(table(found["by_label"], f"{where}.by_label")):
            raise wrong(f"{where}.labels", "has another length than by_label")
        for name in names:
            text(name, f"{where}.labels")
    circle = items(need(found, "circle", where), f"{where}.circle")
    if not 1 <= len(circle) <= MOST_CELLS:
        raise wrong(f"{where}.circle", f"has {len(circle)} entries")
    if "concentration" in found:
        figure(found["concentration"], f"{where}.concentration")
    for value in circle:
        if number(value, f"{where}.circle", high=1e30) is None:
            raise wrong(f"{where}.circle", "holds an undefined number")


def _settling(settled: Mapping[str, Any], where: str) -> None:
    distances = mapping(settled.get("distances") or {}, f"{where}.distances")
    if not distances:
        return
    steps = items(need(settled, "steps", where), f"{where}.steps")
    for step in steps:
        whole(step, f"{where}.steps")
    for key, rows in distances.items():
        if not key.partition("/")[2].isascii() or not key.partition("/")[2].isdecimal() or len(key) > 200:
            raise wrong(f"{where}.distances", f"names {key!r:.60}, which is not TASK/LAYER")
        if len(table(rows, f"{where}.distances.{key}")) != len(steps):
            raise wrong(f"{where}.distances.{key}", f"must have a row for each of {len(steps)} steps")


def table(value: Any, where: str) -> list[list[float]]:
    """Rows of equally many numbers, not too large for a picture."""
    rows = [items(row, where) for row in items(value, where)]
    width = len(rows[0]) if rows else 0
    if not 1 <= len(rows) <= MOST_CELLS or not 1 <= width <= MOST_CELLS or any(len(row) != width for row in rows):
        raise wrong(where, f"must be rows of numbers, all of one length, at most {MOST_CELLS} by {MOST_CELLS}")
    for cell in (cell for row in rows for cell in row):
        if number(cell, where, low=-1e30, high=1e30) is None:
            raise wrong(where, "holds an undefined number")
    return rows

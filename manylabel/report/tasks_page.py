"""Results of a run with several tasks → one HTML file that needs nothing else, with its figures also as PNG files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np

from manylabel.core.task_results import Routing, Settling, SeveralResults
from manylabel.error import DataError
from manylabel.figure import task_figures
from manylabel.report.drawing import axes_in, colour, embedded, plain, slug
from manylabel.report.page import AGAIN, fill
from manylabel.report.task_schema import check_history, check_shown_results, clean_task_results
from manylabel.report.tasks_file import check_results, warnings_of
from manylabel.storage.atomic import write_text
from manylabel.storage.json_lines import read_rows
from manylabel.storage.json_text import read_object

PATCHES = "the edge of a patch shows its first expert in the last sparse layer, the tint its second (none where k = 1)."
Rows = Sequence[Mapping[str, Any]]
Drawing = tuple[str, str, Callable[..., None]]  # name of the file, caption, what draws it into `path`


def write_tasks_report(results: Mapping[str, Any], history: Rows, out: Path, run: Path | None = None) -> Path:
    """The page in the file `out`; figures go to a folder `figures` beside it. `run`: where the run is, if not there."""
    figures = draw_figures(cast(SeveralResults, results), history, out.parent / "figures")
    patches = sorted(((run or out.parent) / "routing").glob("patches-*.png"))
    figures += [(f"{path.stem.split('-')[1]}: {PATCHES}", path) for path in patches]
    found = task_figures(results["tasks"])
    write_text(
        out,
        fill(
            "tasks.html.j2",
            ("style.css", "comparison.css"),
            (),
            {},
            **results,
            found=found,
            meaning=list(dict.fromkeys(one.definition for one, _ in found)),
            warnings=warnings_of(results),
            figures=embedded(figures),
        ),
    )
    return out


def report_from_run(folder: Path, out: Path | None = None) -> Path:
    """The page of a run's results.json and metrics.jsonl, by default as report.html in its folder."""
    try:
        given = read_object(folder / "results.json", advice=AGAIN)
        check_results(given, folder)
        results = clean_task_results(given)
        check_shown_results(results)
        history = read_rows(folder / "metrics.jsonl")
        check_history(history)
    except DataError as error:
        raise DataError(f"{folder} is no finished run with several tasks: {error}") from error
    return write_tasks_report(results, history, out or folder / "report.html", folder)


def draw_figures(results: SeveralResults, history: Rows, folder: Path) -> list[tuple[str, Path]]:
    """(caption, file) of every figure there is something to show for."""
    tasks = list(results["tasks"])
    drawings = chain(
        _of_training(results, history, tasks),
        _of_routing(results.get("routing") or {}),
        _of_settling(results.get("settling") or {}),
        _of_gradients(history, tasks),
    )
    drawn: list[tuple[str, Path]] = []
    for number, (name, caption, draw) in enumerate(drawings, 1):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number:02d}-{name}.png"
        draw(path=path)
        drawn.append((caption, path))
    return drawn


def _of_training(results: SeveralResults, history: Rows, tasks: list[str]) -> Iterator[Drawing]:
    if history:
        said = dict.fromkeys(str(note) for task in tasks if (note := results["tasks"][task].get("loss_note")))
        caption = " ".join(("Training loss of each task.", *said))
        yield "losses", caption, partial(_curves, history, "loss", tasks, "loss")
    if any("held_out" in row for row in history):
        yield (
            "held-out",
            "Loss of the held-out images, by which the number of experts is chosen.",
            partial(_curves, history, "held_out", tasks, "held-out loss"),
        )
    if history and results["model"]["experts"]:
        yield (
            "experts-in-use",
            "How many experts a token of each task uses, over time.",
            partial(_curves, history, "k", tasks, "experts of a token", steps=True),
        )
    if any("judged" in row for row in history):
        goals = {task: results["tasks"][task]["goal"] for task in tasks}
        yield "judged", "Figures on the val images while training.", partial(_judged, history, goals)


def _of_routing(routing: Mapping[str, Routing]) -> Iterator[Drawing]:
    for task, found in routing.items():
        yield (
            f"routing-{slug(task)}",
            f"{task}: share of the tokens' choices that fall on each expert, layer by layer.",
            partial(_heat, found["layers"], [f"layer {n}" for n in found["numbers"]]),
        )
        if found.get("by_label"):
            yield (
                f"routing-labels-{slug(task)}",
                f"{task}: the same in the last sparse layer for images of each label, less the mean of all images.",
                partial(_heat, found["by_label"], found["labels"], signed=True),
            )
        yield (
            f"spread-{slug(task)}",
            f"{task}: tokens around a circle, by the hidden states of the last sparse layer's router; dark in one place "
            f"alone would be a collapsed router.{_concentrated(found)}",
            partial(_ring, found["circle"]),
        )


def _concentrated(found: Routing) -> str:
    """Results of earlier versions do not tell."""
    value = found.get("concentration")
    return "" if value is None else f" Concentration {value:.2f}: 1 = all of them point one way, near 0 = everywhere."


def _of_settling(settled: Settling) -> Iterator[Drawing]:
    for key, distances in (settled.get("distances") or {}).items():
        task, _, layer = key.partition("/")
        yield (
            f"settling-{slug(task)}-{layer}",
            f"{task}, layer {int(layer) + 1}: how far the tokens' experts differ between two steps; 1 = none is the same.",
            partial(_settling, distances, settled["steps"]),
        )


def _of_gradients(history: Rows, tasks: list[str]) -> Iterator[Drawing]:
    if any("conflict" in row for row in history):
        yield (
            "conflicts",
            "Cosine between the gradients of two tasks in the shared weights of the last block (of a transformer its "
            "attention and norms): below 0 they pull apart.",
            partial(_conflicts, history),
        )
    if any("pull" in row for row in history):
        yield (
            "pull",
            "How hard each task pulls the weights that tasks share: length of its gradient in the last block. A task that "
            "pulls far less than another has little say there; tasks.NAME.weight changes that.",
            partial(_curves, history, "pull", tasks, "length of the gradient"),
        )


def step_of(row: Mapping[str, Any]) -> float:
    """Earlier versions had it under another name."""
    step: float = row.get("step", row["epoch"])
    return step


def _curves(history: Rows, key: str, tasks: Sequence[str], label: str, path: Path, steps: bool = False) -> None:
    with axes_in(path, 7, 3.4) as axes:
        for i, task in enumerate(tasks):
            points = [(step_of(row), row[key][task]) for row in history if task in row.get(key, {})]
            if points:
                x, y = zip(*points, strict=True)
                if steps:
                    axes.step(x, y, where="post", color=colour(i), label=plain(task))
                else:
                    axes.plot(x, y, color=colour(i), label=plain(task), marker="." if len(x) < 40 else None)
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        if steps:  # whole numbers from nothing on, also where none of them ever changed
            highest = max((max(row[key].values()) for row in history if row.get(key)), default=1)
            axes.set_ylim(0, highest + 0.5)
            axes.yaxis.get_major_locator().set_params(integer=True)
        else:  # tasks' losses differ in size by far
            axes.set_yscale("log")
        axes.legend(frameon=False)


def _judged(history: Rows, goals: Mapping[str, str], path: Path) -> None:
    with axes_in(path, 7, 3.4) as axes:
        for i, (task, goal) in enumerate(goals.items()):
            points = [
                (step_of(row), row["judged"][task][goal])
                for row in history
                if row.get("judged", {}).get(task, {}).get(goal) is not None
            ]
            if points:
                axes.plot(*zip(*points, strict=True), color=colour(i), marker="o", label=plain(f"{task}: {goal}"))
        axes.set_xlabel("step")
        axes.set_ylabel("percent")
        axes.legend(frameon=False)


def _heat(values: Sequence[Sequence[float]], names: Sequence[str], path: Path, signed: bool = False) -> None:
    table = 100 * np.array(values, float)
    with axes_in(path, 1.6 + 0.55 * table.shape[1], 1.1 + 0.28 * len(names)) as axes:
        most = max(float(np.abs(table).max()), 1e-9)
        limits = {"vmin": -most, "vmax": most, "cmap": "RdBu_r"} if signed else {"vmin": 0, "cmap": "Blues"}
        shown = axes.imshow(table, aspect="auto", **limits)
        axes.set_xticks(range(table.shape[1]), [str(i + 1) for i in range(table.shape[1])])
        axes.set_yticks(range(len(names)), [plain(name) for name in names], fontsize=8)
        axes.set_xlabel("expert")
        axes.figure.colorbar(shown, ax=axes, label="points" if signed else "percent")


def _ring(density: Sequence[float], path: Path) -> None:
    values = np.array(density)
    with axes_in(path, 3.2, 2.9) as axes:
        angles = np.linspace(-np.pi, np.pi, len(values) + 1)
        strongest = max(float(values.max()), 1e-12)
        for start, end, value in zip(angles, angles[1:], values, strict=False):
            arc = np.linspace(start, end, 4)
            outer = np.stack([np.cos(arc), np.sin(arc)])
            ring = np.concatenate([outer, 0.7 * outer[:, ::-1]], axis=1)
            axes.fill(*ring, color="#1f4e79", alpha=float(0.05 + 0.95 * value / strongest), linewidth=0)
        axes.set_aspect("equal")
        axes.axis("off")


def _settling(distances: Sequence[Sequence[float]], steps: Sequence[int], path: Path) -> None:
    with axes_in(path, 4.2, 3.6) as axes:
        shown = axes.imshow(np.array(distances), vmin=0, vmax=1, cmap="viridis", origin="lower")
        ticks = np.unique(np.linspace(0, len(steps) - 1, 5).round().astype(int))
        for set_ticks in (axes.set_xticks, axes.set_yticks):
            set_ticks(ticks, [str(steps[i]) for i in ticks], fontsize=8)
        axes.set_xlabel("step")
        axes.set_ylabel("step")
        axes.figure.colorbar(shown, ax=axes, label="Hamming distance")


def _conflicts(history: Rows, path: Path) -> None:
    pairs = sorted({pair for row in history for pair in row.get("conflict", {})})
    with axes_in(path, 7, 3.2) as axes:
        for i, pair in enumerate(pairs):
            values = [row["conflict"][pair] for row in history if pair in row.get("conflict", {})]
            axes.hist(values, bins=np.linspace(-1, 1, 41), color=colour(i), alpha=0.6, label=plain(pair))
        axes.axvline(0, color="#5b5b5b", linewidth=0.8)
        axes.set_xlabel("cosine")
        axes.set_ylabel("steps")
        axes.legend(frameon=False)

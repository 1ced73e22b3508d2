"""Runs as they lie in their folders, and which of them are the same method with other seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from manylabel.compare.run_results import RunDetails, RunResults
from manylabel.compare.schema import check_scores, checked_results
from manylabel.config import load_yaml, migrated
from manylabel.error import DataError
from manylabel.figure import at
from manylabel.report.expert_detail import clean_experts
from manylabel.report.task_schema import clean_task_results
from manylabel.report.tasks_file import warnings_of
from manylabel.report.value import number
from manylabel.score_file import FILE_NAME, Scores, read_scores
from manylabel.storage.json_text import read_object
from manylabel.storage.plain_file import MB
from manylabel.suggest import closest
from manylabel.training.history import read_history

NAMED = 10  # labels in a note
ALIKE = ("train.seed", "data.workers", "train.checkpoint_minutes", "train.trackers")  # no part of a method
Settings = dict[str, Any]  # as anybody's recipe holds them


@dataclass(frozen=True)
class Run:
    """One finished run (or the results of an evaluation)."""

    name: str
    folder: Path
    results: RunResults
    details: RunDetails
    settings: Settings  # flat: "head.name" → value; empty where there is no config.yaml
    scores: Scores | None
    seconds: float | None  # of training
    config: Path | None = None  # the settings' file
    task: str | None = None  # of a run with several

    @property
    def labels(self) -> list[str]:
        return [label["name"] for label in self.results["labels"]]

    @property
    def ap(self) -> np.ndarray:
        """Average precision of each label in percent [N], NaN where it has none or was never trained."""
        rows = self.results["labels"]
        return np.array([np.nan if row["ap"] is None or row.get("never_trained") else row["ap"] for row in rows], float)

    @property
    def never_trained(self) -> dict[str, float | None]:
        """Labels that no training image had, with their average precision; of several tasks with the task's name."""
        found = {row["name"]: row["ap"] for row in self.results.get("labels", ()) if row.get("never_trained")}
        for task, told in self.results.get("tasks", {}).items():
            found |= {f"{task} {row['name']}": row["ap"] for row in told.get("never_trained", ())}
        return found

    @property
    def size(self) -> int | None:
        """Pixels."""
        return self.results["model"].get("image_size")


@dataclass(frozen=True)
class Method:
    """Runs that differ in their seed only."""

    name: str
    runs: tuple[Run, ...]

    @property
    def ap(self) -> np.ndarray:
        """Mean over seeds. [N]"""
        mean: np.ndarray = np.mean([run.ap for run in self.runs], axis=0)
        return mean

    def figures(self, place: str) -> np.ndarray:
        """One figure of each seed; NaN where it is undefined or not there."""
        found = [at(run.results, place) for run in self.runs]
        return np.array([np.nan if value is None else value for value in found], float)


def warnings_about(methods: Sequence[Method]) -> list[str]:
    """What must be read before any figure: what the runs' own results say first, named by method."""
    found: dict[str, None] = {}
    for method in methods:
        for run in method.runs:
            name = method.name if len(method.runs) == 1 else f"{method.name} ({run.name})"
            found |= {f"{name}: {warning}": None for warning in warnings_of(run.results)}
    return list(found)


def never_trained_notes(methods: Sequence[Method]) -> list[str]:
    """Which labels some run was never trained on: no figure compares them."""
    notes = []
    for method in methods:
        here = {name: ap for run in method.runs for name, ap in run.never_trained.items() if ap is not None}
        if here:
            said = ", ".join(f"{name} (AP {ap:.1f})" for name, ap in list(here.items())[:NAMED])
            more = f" and {len(here) - NAMED} more" if len(here) > NAMED else ""
            notes.append(f"{method.name}: {len(here)} labels had no training image and are not compared: {said}{more}")
    return notes


def read_run(folder: Path, keys: Sequence[str] = ("mAP", "labels", "data", "model"), task: str | None = None) -> Run:
    """`keys`: what the results must have. `task`: one of a run with several, which has results of its own."""
    run = Path(folder)
    folder = run if task is None else _task_folder(run, task)
    given = _read(folder / "results.json" if folder.is_dir() else folder)
    home = folder if folder.is_dir() else folder.parent
    for key in keys:
        if key not in given:
            known = _tasks_of(run) if "tasks" in given else []
            several = f"; choose one with --task: {', '.join(known)}" if known else ""
            raise DataError(
                f"{folder} holds no results of {'several tasks' if key == 'tasks' else 'one task'} ({key!r} is missing)"
                f"{several}"
            )
    with told_of(folder):
        results = cast(RunResults, clean_task_results(given)) if "tasks" in keys else checked_results(given)
        told = _read(home / "details.json") if folder.is_dir() and (home / "details.json").is_file() else {}
        details: RunDetails = {"experts": clean_experts(told.get("experts"), "details.experts")}
    config = (home if task is None else run) / "config.yaml"
    there = config.is_file() and folder.is_dir()
    scores = read_scores(home) if folder.is_dir() else None
    if scores is not None:
        check_scores(scores.scores.shape, results, str(home / FILE_NAME))
    return Run(
        run.name if folder.is_dir() else folder.stem,
        folder,
        results,
        details,
        flat(migrated(load_yaml(config))) if there else {},
        scores,
        _seconds((home if task is None else run) / "metrics.jsonl") if folder.is_dir() else None,
        config if there else None,
        task,
    )


def _tasks_of(run: Path) -> list[str]:
    """Tasks of a run that have results of their own: those with labels."""
    return sorted(path.parent.name for path in run.glob("tasks/*/results.json"))


def _task_folder(run: Path, task: str) -> Path:
    known = _tasks_of(run)
    if task not in known:
        there = (
            f" with labels among {', '.join(known)}" if known else f" in {run}, which has one task or none with labels"
        )
        raise DataError(f"there is no task {task!r:.60}{there}{closest(task, known)}")
    return run / "tasks" / task


def _seconds(path: Path) -> float | None:
    """Of training; None where nobody noted them."""
    told = [number(row.get("seconds", 0), f"{path}, seconds") or 0.0 for row in read_history(path)]
    return sum(told) if told else None


@contextmanager
def told_of(folder: Path) -> Iterator[None]:
    """What is wrong inside is said of this run."""
    try:
        yield
    except DataError as error:
        raise error if str(error).startswith(str(folder)) else DataError(f"{folder}: {error}") from error


def _read(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        raise DataError(f"there is no {path}; give folders of finished runs, e.g. runs/a runs/b")
    return read_object(path, most=256 * MB)


def flat(values: Settings, before: str = "") -> Settings:
    """{"head": {"name": "hsq"}} → {"head.name": "hsq"}"""
    found: Settings = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found


def methods_of(runs: Sequence[Run], names: Sequence[str] = ()) -> list[Method]:
    """Runs grouped by their settings but for the seed, in the order given; named after what tells them apart."""
    groups: dict[str, list[Run]] = {}
    seen: set[Path] = set()
    for run in runs:
        if run.folder.resolve() in seen:
            raise DataError(f"{run.folder} was given twice")
        seen.add(run.folder.resolve())
        kept = {key: value for key, value in run.settings.items() if key not in ALIKE}
        key = json.dumps(kept, sort_keys=True, default=str) if kept else str(run.folder)
        groups.setdefault(key, []).append(run)
    if len(set(names)) < len(names):
        raise DataError("two methods cannot have the same --name")
    if names and len(names) != len(groups):
        raise DataError(
            f"{len(names)} names for {len(groups)} methods (runs that differ in their seed only count as one)"
        )
    chosen = list(names) or _told_apart([group[0] for group in groups.values()])
    return [Method(name, tuple(group)) for name, group in zip(chosen, groups.values(), strict=True)]


def _told_apart(runs: Sequence[Run]) -> list[str]:
    """The head, and the settings in which runs with this head differ; the folder's name where that is too long."""
    names = []
    for run in runs:
        head = str(run.settings.get("head.name", run.results["model"].get("head", "")))
        like = [other for other in runs if other.settings.get("head.name") == run.settings.get("head.name")]
        keys = sorted({key for other in like for key in other.settings})
        varied = [key for key in keys if key not in ALIKE and len({str(other.settings.get(key)) for other in like}) > 1]
        words = [f"{key.removeprefix('head.')}={_short(run.settings.get(key))}" for key in varied]
        name = " ".join([head, *words]).strip()
        names.append(name if run.settings and 0 < len(name) <= 60 else run.name)
    if len(set(names)) == len(names):
        return names
    plain = [run.name for run in runs]
    return plain if len(set(plain)) == len(plain) else [str(run.folder) for run in runs]


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)

"""Runs as they lie in their folders, and which of them are the same method with other seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.config import load_yaml
from manylabel.error import DataError
from manylabel.score_file import Scores, read_scores
from manylabel.training.history import read_history

ALIKE = ("train.seed", "data.workers", "train.checkpoint_minutes", "train.trackers")  # no part of a method


@dataclass(frozen=True)
class Run:
    """One finished run (or the results of an evaluation)."""

    name: str
    folder: Path
    results: dict[str, Any]
    details: dict[str, Any]
    settings: dict[str, Any]  # flat: "head.name" → value; empty where there is no config.yaml
    scores: Scores | None
    seconds: float | None  # of training

    @property
    def labels(self) -> list[str]:
        return [label["name"] for label in self.results["labels"]]

    @property
    def ap(self) -> np.ndarray:
        """Average precision of each label in percent [N], NaN where it has none."""
        return np.array([np.nan if label["ap"] is None else label["ap"] for label in self.results["labels"]], float)

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
        return np.mean([run.ap for run in self.runs], axis=0)

    def figures(self, name: str) -> np.ndarray:
        """One figure of each seed."""
        return np.array([np.nan if run.results.get(name) is None else run.results[name] for run in self.runs], float)


def read_run(folder: Path, keys: Sequence[str] = ("mAP", "labels", "data", "model")) -> Run:
    """`keys`: what the results must have."""
    folder = Path(folder)
    results = _read(folder / "results.json" if folder.is_dir() else folder)
    home = folder if folder.is_dir() else folder.parent
    for key in keys:
        if key not in results:
            raise DataError(
                f"{folder} holds no results of {'several tasks' if key == 'tasks' else 'one task'} ({key!r} is missing)"
            )
    details = _read(home / "details.json") if folder.is_dir() and (home / "details.json").is_file() else {}
    config = home / "config.yaml"
    history = read_history(home / "metrics.jsonl") if folder.is_dir() else []
    return Run(
        home.name if folder.is_dir() else folder.stem,
        folder,
        results,
        details,
        flat(load_yaml(config)) if config.is_file() and folder.is_dir() else {},
        read_scores(home) if folder.is_dir() else None,
        sum(row.get("seconds", 0) for row in history) if history else None,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"there is no {path}; give folders of finished runs, e.g. runs/a runs/b") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({error})") from error
    if not isinstance(values, dict):
        raise DataError(f"{path} must hold a JSON object")
    return values


def flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    """{"head": {"name": "hsq"}} → {"head.name": "hsq"}"""
    found: dict[str, Any] = {}
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
        key = json.dumps(kept, sort_keys=True) if kept else str(run.folder)
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
        head = run.settings.get("head.name", run.results["model"].get("head", ""))
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

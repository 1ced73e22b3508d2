"""Which recipes, runs and models are of several tasks. Looks at files only, so that a command line can ask early."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manylabel.config import load_recipe, load_yaml
from manylabel.error import DataError

SCHEMA = 2  # of results.json


def names_tasks(values: Mapping[str, Any]) -> bool:
    """Whether these settings are for several tasks."""
    return "tasks" in values


def run_names_tasks(recipe: str | None, out: str | Path, resume: bool) -> bool:
    """Whether this is a run with several tasks: its recipe names them, or the run that goes on does."""
    if recipe is not None:
        return names_tasks(load_recipe(recipe))
    stored = Path(out) / "config.yaml"
    return resume and stored.is_file() and names_tasks(load_yaml(stored))


def model_has_tasks(path: str | Path) -> bool:
    """Whether the bundle in this folder (or its run's) is one of several tasks."""
    return any((folder / "tasks.json").is_file() for folder in (Path(path), Path(path) / "bundle"))


def warnings_of(results: Mapping[str, Any]) -> list[str]:
    """What must be read before any figure of these results of one task or of several; those of old versions tell none."""
    found = [str(warning) for warning in results.get("warnings", ())]
    for name, task in results.get("tasks", {}).items():
        found += [f"{name}: {warning}" for warning in task.get("warnings", ())]
    return found


def check_results(results: Mapping[str, Any], where: str | Path) -> None:
    """Results of several tasks that this version can show."""
    if results.get("schema") != SCHEMA:
        raise DataError(f"{where} holds results of another version of manylabel; train it again")

"""The folder of a run: opened with care, and the files in it that several steps share."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from manylabel.config import Config, as_stored, config_of, load_recipe, load_yaml, make_config, merge, migrated
from manylabel.data.read.split_file import split_of_rows, write_split_file
from manylabel.data.table import Table
from manylabel.error import CheckpointError, ConfigError
from manylabel.report import write_report
from manylabel.storage.atomic import write_json
from manylabel.storage.output import MADE_BY
from manylabel.version import VERSION


def reopen_folder(
    folder: Path,
    recipe: str | Mapping[str, Any] | None,
    settings: list[str],
    given: dict[str, Any],
    resolve: Callable[[Config], Config],
) -> Config:
    """The config of the run in this folder; settings that are given again must be the same once they are resolved."""
    stored = folder / "config.yaml"
    if not stored.is_file():
        raise CheckpointError(f"there is no run to resume in {folder} (no config.yaml)")
    values = migrated(load_yaml(stored))
    old = config_of(values)
    if recipe:
        values = merge(values, load_recipe(recipe) if isinstance(recipe, str) else recipe)
    if "tasks" in values and "data" in given:  # nothing is left for it to say, unless it is another
        path = str(given["data"].get("path", ""))
        if not all(os.path.abspath(path) == task.data.path or path == task.data.path for task in old.tasks.values()):
            raise ConfigError(f"{folder} was started with other data than {path}; resume it without naming any")
        given = {key: one for key, one in given.items() if key != "data"}
    asked = make_config(values, settings, **given)
    changed = _differences(as_stored(resolve(old)), as_stored(resolve(asked)))
    if changed:
        raise ConfigError(
            f"{folder} was started with other settings ({', '.join(changed)}); resume it without them, or start a new run "
            "(cached features are used again)"
        )
    return resolve(old)


def _differences(old: dict[str, Any], new: dict[str, Any], where: str = "") -> list[str]:
    found = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found += _differences(a, b, f"{where}{key}.")
        elif a != b:
            found.append(f"{where}{key}: {a!r} → {b!r}")
    return found


def write_outputs(folder: Path, results: dict[str, Any], extra: dict[str, Any]) -> None:
    write_json(folder / "results.json", results)
    write_json(folder / "details.json", {"made_by": MADE_BY, **extra})
    write_report(results, extra, folder / "report.html")


def machine_facts(accelerator: Accelerator) -> dict[str, Any]:
    """With what a run was made, for run.json."""
    return {
        "manylabel": VERSION,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": str(accelerator.device),
        "processes": accelerator.num_processes,
    }


def write_split(folder: Path, split: Mapping[str, str]) -> None:
    """Kept in the run's folder, so that resume and evaluate use the same one."""
    write_split_file(folder / "split.csv", split)


def read_split(folder: Path, table: Table) -> np.ndarray | None:
    """The split this run made, '' for images it did not know; None when it made none."""
    path = folder / "split.csv"
    return split_of_rows(path, table.keys) if path.is_file() else None

"""Whether files are of a run with several tasks. Looks at files only, so that a command line can ask early."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manylabel.core.task_results import SCHEMA
from manylabel.error import DataError
from manylabel.storage.json_text import read_object
from manylabel.storage.plain_file import MB


def has_tasks(path: str | Path) -> bool:
    """Whether the results in this folder are of several tasks; where there are none, whether its bundle is."""
    folder = Path(path)
    results = folder / "results.json"
    if results.is_file():
        try:
            return "tasks" in read_object(results, most=256 * MB)
        except DataError:
            return False  # whoever reads it says what is wrong
    return any((place / name).exists() for place in (folder, folder / "bundle") for name in ("tasks.json", "tasks"))


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

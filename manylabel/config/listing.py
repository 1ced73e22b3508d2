"""Every setting with its default and what it does, as --set takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from manylabel.config.option import Part
from manylabel.config.schema import Config, TaskConfig
from manylabel.config.shorthand import AT_THE_TOP

NAMED = "NAME"  # stands for a task's name


def settings_of_one_task() -> list[tuple[str, str, str]]:
    """(key, default, meaning) of a run with one task."""
    of_task = [row for row in _walk(TaskConfig(), "") if row[0].partition(".")[0] in AT_THE_TOP]
    return [*of_task, *(row for row in _walk(Config(), "") if not row[0].startswith("tasks"))]


def settings_of_several_tasks() -> list[tuple[str, str, str]]:
    """The same of each task among several."""
    return list(_walk(TaskConfig(), f"tasks.{NAMED}."))


def settings_of(options: Any, before: str) -> list[tuple[str, str, str]]:
    """The same of one part, from its options as they are by default; `before` stands before every key."""
    return list(_walk(options, before))


def _walk(section: Any, before: str) -> Iterator[tuple[str, str, str]]:
    for each in fields(section):
        key, value, text = f"{before}{each.name}", getattr(section, each.name), each.metadata.get("help", "")
        if isinstance(value, Part):
            yield f"{key}.name", value.name, text
        elif is_dataclass(value):
            yield from _walk(value, f"{key}.")
        elif each.name == "tasks":
            continue
        else:
            yield key, written(value), text


def written(value: Any) -> str:
    """A default as --set takes it."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)

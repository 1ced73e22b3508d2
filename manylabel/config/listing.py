"""Every setting with its default and what it does, as --set takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from manylabel.config.multitask import MultiTaskConfig, TaskConfig
from manylabel.config.option import Part
from manylabel.config.schema import Config

NAMED = "NAME"  # stands for a task's name


def settings_of_one_task() -> list[tuple[str, str, str]]:
    """(key, default, meaning) of a run that asks one question."""
    return list(_walk(Config(), ""))


def settings_of_several_tasks() -> list[tuple[str, str, str]]:
    return list(_walk(MultiTaskConfig(tasks={NAMED: TaskConfig()}), ""))


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
        elif isinstance(value, dict) and NAMED in value:
            yield from _walk(value[NAMED], f"{key}.{NAMED}.")
        else:
            yield key, written(value), text


def written(value: Any) -> str:
    """A default as --set takes it."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)

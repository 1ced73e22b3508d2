"""Settings of a run with one task stand at the top of a file: `head: linear` is short for `tasks.labels.head: linear`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from manylabel.config.option import Part
from manylabel.config.schema import LABELS, Config, TaskConfig
from manylabel.error import ConfigError

AT_THE_TOP = ("kind", "data", "neck", "head", "text", "zero_shot", "loss", "augment")
ORDER = (
    *("kind", "data", "backbone", "neck", "head", "text", "zero_shot", "loss"),
    *("optimiser", "schedule", "augment", "train"),
)


def unfold(values: Mapping[str, Any]) -> dict[str, Any]:
    """With every task under its name."""
    at_the_top = {key: values[key] for key in AT_THE_TOP if key in values}
    if "tasks" not in values:
        rest = {key: value for key, value in values.items() if key not in at_the_top}
        return {"tasks": {LABELS: at_the_top}, **rest}
    if at_the_top:
        first = next(iter(at_the_top))
        names = list(values["tasks"]) if isinstance(values["tasks"], Mapping) else []
        raise ConfigError(
            f"{first} stands beside tasks; say it for one of them: tasks.{names[0] if names else 'NAME'}.{first}"
        )
    return dict(values)


def has_one_task(config: Config) -> bool:
    """Whether its task needs no name: it has the usual one, and nothing that only stands under a name."""
    plain = TaskConfig()
    named = [field.name for field in fields(TaskConfig) if field.name not in AT_THE_TOP]
    return list(config.tasks) == [LABELS] and all(getattr(config.only, name) == getattr(plain, name) for name in named)


def fold(config: Config, values: dict[str, Any]) -> dict[str, Any]:
    """The config's plain values as a file holds them."""
    if not has_one_task(config):
        return values
    task = values["tasks"][LABELS]
    flat = {**{key: task[key] for key in AT_THE_TOP}, **{key: one for key, one in values.items() if key != "tasks"}}
    return {key: flat[key] for key in ORDER}


# --- other names of parts ----------------------------------------------------------------------------------------------

PARTS = ("neck", "head", "text", "loss", "optimiser", "schedule")  # another name drops the options of the old one …
KEEPING = ("head",)  # … but for those that both have
OPTIONS: dict[str, dict[str, frozenset[str]]] = {}  # names of options by part and name; registries fill it


def note_options(part: str, name: str, options: type) -> None:
    OPTIONS.setdefault(part, {})[name] = frozenset(field.name for field in fields(options))


def shared_options(part: str, name: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these options that the part of this name has as well, where another name keeps any."""
    known = OPTIONS.get(part, {}).get(name, frozenset()) if part in KEEPING else frozenset()
    return {key: value for key, value in options.items() if key in known}


def default_name(part: str) -> str:
    """Of a part that only options are given of."""
    of_task = getattr(TaskConfig(), part, None)
    found = of_task if isinstance(of_task, Part) else getattr(Config(), part)
    name: str = found.name
    return name

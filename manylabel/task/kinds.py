"""From the name of a kind to its Task. A kind is a class in a file of this room, registered by `@register`."""

from __future__ import annotations

from typing import TypeVar

from manylabel.config import Config, TaskConfig, has_one_task, register_kind
from manylabel.core.decision import Activation
from manylabel.error import ConfigError
from manylabel.metric import measure_as
from manylabel.suggest import closest
from manylabel.task.base import AnyTask

KINDS: dict[str, type[AnyTask]] = {}
T = TypeVar("T", bound=type[AnyTask])


def register(cls: T) -> T:
    """Make a kind known by its name."""
    if cls.kind in KINDS:
        raise ConfigError(f"two kinds of task are called {cls.kind!r}")
    measure_as(cls.kind, cls.measured_as)
    KINDS[cls.kind] = cls
    register_kind(cls.kind, cls.defaults)
    return cls


def kind_of(config: TaskConfig) -> type[AnyTask]:
    """What can be said of the task before its loss and head are known to be there."""
    if config.kind not in KINDS:
        raise ConfigError(f"kind cannot be {config.kind!r:.100}{closest(config.kind, KINDS)}")
    return KINDS[config.kind]


def told_by_task(config: Config) -> bool:
    """Whether results and history tell of each task by its name: of one task with labels they tell without it."""
    return not has_one_task(config) or kind_of(config.only).finds_objects


def task_of(config: TaskConfig, activation: Activation | None = None) -> AnyTask:
    """`activation`: what a bundle remembers, which needs no loss any more; None = as the loss says."""
    task: AnyTask = kind_of(config).of(config, activation)
    return task

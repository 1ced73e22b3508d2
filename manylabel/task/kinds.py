"""From the name of a kind to its Task: here and nowhere else."""

from __future__ import annotations

from typing import overload

from manylabel.config import Config, TaskConfig
from manylabel.core.decision import Activation
from manylabel.task.base import AnyConfig, AnyTask
from manylabel.task.classification import Classification, MultiLabel, SingleLabel
from manylabel.task.detection import Detection

KINDS: dict[str, type[AnyTask]] = {kind.kind: kind for kind in (MultiLabel, SingleLabel, Detection)}


def kind_of(config: AnyConfig) -> type[AnyTask]:
    """What can be said of the task before its loss and detector are known to be there."""
    return KINDS[config.task if isinstance(config, Config) else config.kind]


@overload
def task_of(config: Config, activation: Activation | None = None) -> Classification: ...


@overload
def task_of(config: TaskConfig, activation: Activation | None = None) -> AnyTask: ...


def task_of(config: AnyConfig, activation: Activation | None = None) -> AnyTask:
    """`activation`: what a bundle remembers, which needs no loss any more; None = as the loss says."""
    task: AnyTask = kind_of(config).of(config, activation)
    return task

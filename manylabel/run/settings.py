"""The settings of a run with every option of every part written out; what makes no sense is found here, before work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from manylabel.backbone import resolved
from manylabel.config import AdaptConfig, Config, TaskConfig, config_of, has_one_task, migrated
from manylabel.error import ConfigError
from manylabel.loss import LOSSES
from manylabel.neck import NECKS
from manylabel.run.data_paths import with_absolute_paths
from manylabel.run.feeds import check_cache
from manylabel.suggest import closest
from manylabel.task import kind_of, task_of
from manylabel.task.wording import in_words_of
from manylabel.text import EMBEDDERS
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.phase import MEAN, first_parts

OF_EXPERTS, OF_LABELS = 0.01, 0.1  # shares of the training images that are held out where nobody says another


def resolve(config: Config) -> Config:
    """Wrong names and options are errors, and so are combinations that make no sense."""
    several = not has_one_task(config)
    for name in config.tasks:
        if not name.isidentifier() or hasattr(nn.ModuleDict(), name) or hasattr(nn.ParameterDict(), name):
            raise ConfigError(
                f"tasks: {name!r} is no name for a task; use letters, digits and _, and no word that torch needs itself"
            )
    config = replace(config, tasks={name: _task(name, task, several) for name, task in config.tasks.items()})
    _check_train(config)
    config = replace(config, train=replace(config.train, adapt=_adapt(config)))
    _check_frozen_sharing(config)
    config = with_absolute_paths(
        replace(
            config,
            backbone=resolved(config.backbone),
            optimiser=OPTIMISERS.resolve(config.optimiser),
            schedule=SCHEDULES.resolve(config.schedule),
        )
    )
    check_cache(config)
    return config


def stored_config(values: Mapping[str, Any]) -> Config:
    """Of a run's or a bundle's own file, whatever version wrote it."""
    return config_of(migrated(values))


def _adapt(config: Config) -> AdaptConfig:
    """With the share that is held out written out, where something adapts."""
    adapt = config.train.adapt
    heads = any(task.head.options.get("adaptive") for task in config.tasks.values())
    if adapt.held_out is not None or not (heads or adapt.enabled):
        return adapt
    return replace(adapt, held_out=OF_LABELS if heads else OF_EXPERTS)


def _check_frozen_sharing(config: Config) -> None:
    """Shared weights that are frozen must have learned something."""
    experts = config.backbone.options.get("experts", {})
    released = isinstance(experts, Mapping) and experts.get("sharing") == "taps_released"
    if released and (config.backbone.freeze != "full" or (config.train.first is None and not _has_weights(config))):
        raise ConfigError(
            "backbone.options.experts.sharing=taps_released freezes what the tasks share after train.first (set it, with "
            "train.first_steps), or as backbone.weights have it; and it needs backbone.freeze=full"
        )


def _has_weights(config: Config) -> bool:
    return config.backbone.weights not in ("auto", "none")


def _task(name: str, task: TaskConfig, several: bool) -> TaskConfig:
    where = f"tasks.{name}." if several else ""
    if several and not task.data.path:
        raise ConfigError(
            f"task {name} has no data; name some for all tasks (manylabel train PATH --recipe …), or for this one: "
            f"--set tasks.{name}.data.path=…"
        )
    with in_words_of(name, several):
        kind = kind_of(task)
        task = replace(
            task,
            neck=NECKS.resolve(task.neck),
            head=kind.heads.resolve(task.head),
            text=EMBEDDERS.resolve(task.text),
            loss=LOSSES.resolve(task.loss),
        )
        kind.check(task, where)
        task_of(task)
    return task


def _check_train(config: Config) -> None:
    t, tasks = config.train, config.tasks
    if t.first is not None and t.first not in tasks:
        raise ConfigError(f"train.first: there is no task {t.first!r}{closest(t.first, tasks)}")
    if t.first_steps and t.first is None:
        raise ConfigError("train.first_steps: of which task? Name it with train.first")
    if t.first is not None and not (t.steps and t.first_steps):
        raise ConfigError("train.first: set train.first_steps, and train.steps for what follows")
    if t.first is None and (t.first_optimiser or t.first_schedule):
        raise ConfigError("train.first_optimiser and train.first_schedule: of which task? Name it with train.first")
    for registry, part in zip((OPTIMISERS, SCHEDULES), first_parts(config), strict=True):
        try:
            registry.options(part)
        except ConfigError as error:
            error.args = (str(error).replace(f"{registry.section}.", f"train.first_{registry.section}."),)
            raise
    if t.best_by is not None and t.best_by not in (*tasks, MEAN):
        raise ConfigError(f"train.best_by: there is no task {t.best_by!r}{closest(t.best_by, (*tasks, MEAN))}")
    if t.best_by is not None and t.keep != "best":
        raise ConfigError(
            f"train.best_by={t.best_by} chooses the best weights, and train.keep={t.keep} none; set one of them"
        )
    if t.head_first and any(not kind_of(task).cached for task in tasks.values()):
        raise ConfigError(
            "train.head_first learns from cached features, which detection does not; set train.head_first=0"
        )

"""Settings of a run with several tasks: from a recipe, a data set for all tasks, and --set overrides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from manylabel.config import (
    OWN_LOSS,
    SELECTION_PRESETS,
    AugmentConfig,
    MultiTaskConfig,
    Part,
    TaskConfig,
    override,
    parse,
)
from manylabel.detect import DETECTORS
from manylabel.error import ConfigError
from manylabel.head import HEADS
from manylabel.loss import LOSSES
from manylabel.run.data_paths import with_absolute_paths
from manylabel.suggest import closest
from manylabel.task import kind_of
from manylabel.training.optimise import OPTIMISERS, SCHEDULES, CommonOptions

OF_TASK = ("head", "loss", "detector")
PARTS = (*OF_TASK, "optimiser", "schedule")  # another name drops the options of the old one
MOVES = ("flip", "random_crop")  # changes to a training image that boxes and masks can follow
STILL = AugmentConfig()
DEFAULTS: dict[str, Part] = {part: getattr(TaskConfig(), part) for part in OF_TASK}


def make_multitask_config(
    values: Mapping[str, Any],
    settings: Iterable[str] = (),
    data: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> MultiTaskConfig:
    """`data` is for every task that names no data of its own."""
    asked = override({}, settings)
    _known_tasks(values.get("tasks"), asked.get("tasks"))
    merged = _over(dict(values), asked)
    tasks = merged.get("tasks")
    if isinstance(tasks, Mapping):  # --set tasks.labels=none leaves a task of the recipe out
        left_out = [name for name, task in tasks.items() if task in (None, "none")]
        tasks = {name: task for name, task in tasks.items() if name not in left_out}
        if isinstance(train := merged.get("train"), Mapping) and train.get("first") in (*left_out, "none"):
            merged["train"] = {**train, "first": None, "first_steps": 0}
    if not isinstance(tasks, Mapping) or not tasks:
        raise ConfigError("tasks must name one task or more, each with a kind and its data")
    taken = data is None
    for name, task in tasks.items():
        task = _written_out(name, task)
        if not task["data"].get("path"):
            taken, task["data"] = True, {**(data or {}), **task["data"]}
        tasks = {**tasks, name: task}
    if not taken:
        raise ConfigError(
            f"every task of this recipe names its own data; leave {dict(data or {}).get('path')} out, or set it for a task: "
            f"--set tasks.{next(iter(tasks))}.data.path=…"
        )
    _no_backbone_rate(merged.get("optimiser"))
    for part in ("optimiser", "schedule"):
        if isinstance(merged.get(part), Mapping):
            merged[part] = {"name": getattr(MultiTaskConfig(), part).name, **merged[part]}
    _unfold_presets(merged, asked)
    if seed is not None and isinstance(train := merged.get("train") or {}, Mapping):
        merged["train"] = {**train, "seed": seed}
    return resolve(parse(MultiTaskConfig, {**merged, "tasks": tasks}))


def _written_out(name: str, task: Any) -> dict[str, Any]:
    """A task as a recipe may shorten it, with its parts' names and its data as a mapping."""
    if not isinstance(task, Mapping):
        raise ConfigError(f"tasks.{name} takes settings of its own (a mapping), not {task!r}")
    data = task.get("data")
    data = {"path": data} if isinstance(data, str) else data or {}  # data: photos/ is short for data: {path: photos/}
    if not isinstance(data, Mapping):
        raise ConfigError(f"tasks.{name}.data takes a path, or settings of its own (a mapping), not {data!r}")
    # options without a name are those of the default one
    parts = {
        part: {"name": DEFAULTS[part].name, **task[part]} for part in OF_TASK if isinstance(task.get(part), Mapping)
    }
    return {**task, **parts, "data": dict(data)}


def _unfold_presets(merged: dict[str, Any], asked: Mapping[str, Any]) -> None:
    """What is said beside a preset goes on top of it; a preset that --set asks for goes on top of the recipe."""
    for section in (merged, asked):
        if isinstance(selection := section.get("selection"), Mapping):
            preset = SELECTION_PRESETS.get(str(selection.get("preset")), {})
            merged["selection"] = {**merged["selection"], **preset, **selection}


def resolve(config: MultiTaskConfig) -> MultiTaskConfig:
    """The config with every option of every part written out; wrong names and options are found here, before work."""
    for name, task in config.tasks.items():
        if not name.isidentifier() or hasattr(nn.ModuleDict(), name) or hasattr(nn.ParameterDict(), name):
            raise ConfigError(
                f"tasks: {name!r} is no name for a task; use letters, digits and _, and no word that torch needs itself"
            )
        if not task.data.path:
            raise ConfigError(
                f"task {name} has no data; name some for all tasks (manylabel train PATH --recipe …), or for this one: "
                f"--set tasks.{name}.data.path=…"
            )
    if config.train.first is not None and config.train.first not in config.tasks:
        raise ConfigError(
            f"train.first: there is no task {config.train.first!r}{closest(config.train.first, config.tasks)}"
        )
    if config.train.first_steps and config.train.first is None:
        raise ConfigError("train.first_steps: of which task? Name it with train.first")
    config = with_absolute_paths(config)
    return replace(
        config,
        tasks={name: _resolve_task(name, task) for name, task in config.tasks.items()},
        optimiser=OPTIMISERS.resolve(config.optimiser),
        schedule=SCHEDULES.resolve(config.schedule),
    )


def _resolve_task(name: str, task: TaskConfig) -> TaskConfig:
    kind = kind_of(task)
    if kind.finds_objects:
        idle = [key for key, value in vars(task.augment).items() if key not in MOVES and value != getattr(STILL, key)]
        if idle:
            raise ConfigError(
                f"task {name}: augment.{idle[0]} is not for detection, which takes {' and '.join(MOVES)} (its scale)"
            )
        return replace(task, detector=DETECTORS.resolve(task.detector))
    if task.head.options.get("adaptive"):
        raise ConfigError(
            f"task {name}: head.adaptive learns from judgements after every epoch, which there are none of here"
        )
    for option in ("query", "pooling", "grouping"):
        if (asked := task.head.options.get(option)) in ("text", "cooccurrence"):
            raise ConfigError(
                f"task {name}: head.{option}={asked} needs words or counts of labels, which heads of several tasks are not "
                f"told; leave tasks.{name}.head.{option} out, or train this task by itself"
            )
    if task.kind in OWN_LOSS and task.loss == DEFAULTS["loss"]:  # the labels compete unless somebody says otherwise
        task = replace(task, loss=Part(OWN_LOSS[task.kind]))
    activation = LOSSES.get(task.loss.name).activation
    if activation == "softmax" and not kind.one_label:
        raise ConfigError(f"task {name}: loss {task.loss.name} lets labels compete, so it needs kind: single_label")
    return replace(task, head=HEADS.resolve(task.head), loss=LOSSES.resolve(task.loss))


def _no_backbone_rate(optimiser: Any) -> None:
    """There is no backbone apart from the heads here; one of a stored run, which nobody asked for, is as it is."""
    usual = CommonOptions().backbone_rate
    if isinstance(optimiser, Mapping) and optimiser.get("backbone_rate", usual) != usual:
        raise ConfigError(
            "optimiser.backbone_rate means nothing with several tasks: set tasks.NAME.rate for a task's own parts, or "
            "optimiser.layer_decay for earlier layers"
        )


def _known_tasks(named: Any, asked: Any) -> None:
    """A task that only --set names is a slip, unless it says of what kind it is."""
    if not isinstance(named, Mapping) or not isinstance(asked, Mapping):
        return
    for name, task in asked.items():
        if name not in named and not (isinstance(task, Mapping) and "kind" in task):
            raise ConfigError(
                f"--set tasks.{name}: there is no such task (a new one needs a kind){closest(str(name), named)}"
            )


def _over(old: Any, new: Any, key: str = "") -> Any:
    """Settings laid over others, section by section."""
    if isinstance(new, str) and key in PARTS:
        new = {"name": new}
    if isinstance(old, str) and key in PARTS:
        old = {"name": old}
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    if key in PARTS and "name" in new and new["name"] != old.get("name", new["name"]):
        return dict(new)
    return {**old, **{name: _over(old.get(name), value, name) for name, value in new.items()}}

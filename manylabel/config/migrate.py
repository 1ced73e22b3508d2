"""Settings of earlier versions: those in stored files get their new names here; whoever writes them now is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manylabel.config.kind import defaults_of
from manylabel.config.schema import TaskConfig
from manylabel.error import ConfigError

RENAMED = {  # the old place → the new one
    "task": "kind",
    "vit": "backbone.options",
    "experts": "backbone.options.experts",
    "selection": "train.adapt",
    "train.judge_every": "train.evaluate_every",
    "backbone.options.weights": "backbone.weights",
}
IN_A_TASK = {"rate": "lr_scale", "detector": "head"}
IN_ADAPT = {"adaptive": "enabled", "least": "min_decrease", "most": "max_experts"}
MOE_VIT = "moe_vit"
DETECTOR = "cascade"


def refuse_old_names(values: Mapping[str, Any]) -> None:
    """The error for a setting of old says what it is called now."""
    for old, new in RENAMED.items():
        if _has(values, old):
            raise ConfigError(f"the setting {old} is called {new} now{_more(old)}")
    tasks = values.get("tasks")
    for name, task in tasks.items() if isinstance(tasks, Mapping) else ():
        for old, new in IN_A_TASK.items():
            if isinstance(task, Mapping) and old in task:
                raise ConfigError(f"the setting tasks.{name}.{old} is called tasks.{name}.{new} now")


def _has(values: Mapping[str, Any], place: str) -> bool:
    found: Any = values
    for key in place.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return False
        found = found[key]
    return True


def _more(old: str) -> str:
    if old == "vit":
        return " (with backbone.name=moe_vit; vit.weights is backbone.weights)"
    return (
        " (selection.adaptive is train.adapt.enabled, selection.k is backbone.options.k)" if old == "selection" else ""
    )


def migrated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that an earlier version stored with a run or bundle, under their names of today."""
    found = dict(values)
    if "task" in found:
        found["kind"] = found.pop("task")
    if "vit" in found:
        found = _of_several(found)
    backbone = found.get("backbone")
    if isinstance(backbone, Mapping) and backbone.get("name") == MOE_VIT and "weights" in backbone.get("options", {}):
        options = dict(backbone["options"])
        weights = options.pop("weights")
        found["backbone"] = {**backbone, "options": options, **({} if weights is None else {"weights": weights})}
    train = found.get("train")
    if isinstance(train, Mapping) and isinstance(adapt := train.get("adapt"), Mapping):
        found["train"] = {**train, "adapt": {"to_the_end": False, **adapt}}  # presets of then did not say so
    if "head" in found:
        found["head"] = _head(found["head"])
    tasks = found.get("tasks")
    if isinstance(tasks, Mapping):
        found["tasks"] = {name: _with_head(task) for name, task in tasks.items()}
    return found


def _with_head(task: Any) -> Any:
    return {**task, "head": _head(task["head"])} if isinstance(task, Mapping) and "head" in task else task


def _head(head: Any) -> Any:
    """Query transformers of earlier versions had no norm behind their decoder. Stored heads have all their options."""
    of_queries = isinstance(head, Mapping) and "encoder_layers" in head
    return {"decoder_norm": False, **head} if of_queries else head


def _of_several(found: dict[str, Any]) -> dict[str, Any]:
    """A run of several tasks had sections of its own for its transformer."""
    vit, experts, selection = (dict(found.pop(key, {}) or {}) for key in ("vit", "experts", "selection"))
    weights = vit.pop("weights", None)
    adapt = {IN_ADAPT.get(key, key): value for key, value in selection.items() if key != "k"}
    train = dict(found.get("train", {}))
    train["evaluate_every"] = train.pop("judge_every", 0)
    optimiser = dict(found.get("optimiser", {}))
    tasks = {name: _task(task) for name, task in found.get("tasks", {}).items()}
    return {
        **found,
        "tasks": tasks,
        "backbone": {
            "name": MOE_VIT,
            "weights": weights or "none",
            "freeze": "full",
            "options": {**vit, "experts": experts, "k": selection.get("k", 1)},
        },
        "optimiser": {**optimiser, "backbone_rate": 1.0},
        "train": {**train, "adapt": adapt, "keep": "last", "weigh_costs": True},
    }


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(task)
    detector = found.pop("detector", None)
    kind = str(found.get("kind", TaskConfig().kind))
    if defaults_of(kind, "kind").head == DETECTOR:  # others had one as well, unused
        found["head"] = detector or DETECTOR
        found.pop("loss", None)
    if "rate" in found:
        found["lr_scale"] = found.pop("rate")
    return found

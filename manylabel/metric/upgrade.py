"""Results of earlier versions, which did not describe their figures: described as they would be today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from manylabel.core.described import Described
from manylabel.figure import at
from manylabel.metric.registry import METRICS, MULTI_LABEL, SINGLE_LABEL, Metric, describe

ALWAYS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1", "calibration_error")  # in the results of every version
WHOLE = ("top3", "at_thresholds", "f1_at.3", "f1_at.5")  # with all of their figures, or not there


def with_descriptions(results: Mapping[str, Any]) -> dict[str, Any]:
    """The same results, of one task or of several, with `metrics` and `tables`; their own `definitions` are kept."""
    if isinstance(results.get("tasks"), Mapping):
        return {**results, "tasks": {name: _task(task) for name, task in results["tasks"].items()}}
    if "metrics" in results:
        return dict(results)
    kind = SINGLE_LABEL if "top1" in results else MULTI_LABEL
    held = [metric for metric in METRICS.of(kind) if _is_there(results, metric.where)]
    own = results.get("definitions")
    return {**results, **_described(held, kind, results, own if isinstance(own, Mapping) else {})}


def missing(results: Mapping[str, Any]) -> list[str]:
    """What results of every version hold and these do not."""
    return [] if "metrics" in results else [place for place in ALWAYS if place not in results]


def _task(task: Any) -> Any:
    if not isinstance(task, Mapping) or "metrics" in task or not isinstance(task.get("figures"), Mapping):
        return task
    kind = str(task.get("kind"))
    held = [metric for metric in METRICS.of(kind) if metric.name in task["figures"]]
    return {**task, **describe(held, kind, {}, by_name=True)}


def _is_there(results: Mapping[str, Any], place: str) -> bool:
    before, _, last = place.rpartition(".")
    holder = at(results, before) if before else results
    return isinstance(holder, Mapping) and (last in holder or before in WHOLE)


def _described(held: Iterable[Metric], kind: str, results: Mapping[str, Any], own: Mapping[str, Any]) -> Described:
    zero_shot = results.get("zero_shot")
    told = describe(held, kind, {"labels_total": 0, **_counts(results), **_counts(zero_shot)})
    for place, words in told["metrics"].items():
        words["definition"] = own.get(place, words["definition"])
    return told


def _counts(values: Any) -> dict[str, int]:
    given = values.items() if isinstance(values, Mapping) else ()
    return {key: value for key, value in given if type(value) is int and key.endswith(("labels", "_total"))}

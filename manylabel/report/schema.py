"""What a results file must hold. It is checked here once; the page can trust the outcome.

Measures are percentages 0..100 (null where undefined); thresholds are scores 0..1, alpha is a share 0..1.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NotRequired, TypedDict, cast

from manylabel.core.described import Described
from manylabel.metric.upgrade import missing, with_descriptions
from manylabel.report.metric_schema import clean_figures
from manylabel.report.value import items, mapping, need, need_number, need_text, number, text, wrong

LEVEL = ("level", "labels", "scored")
LabelFigure = Literal["ap", "support", "ap_interpolated", "known", "threshold", "precision", "recall", "f1", "alpha"]
LABEL_NEEDED: tuple[LabelFigure, ...] = ("ap", "support")
LABEL_OPTIONAL: tuple[LabelFigure, ...] = (
    "ap_interpolated", "known", "threshold", "precision", "recall", "f1", "alpha",
)  # fmt: skip
LIMITS = {"support": math.inf, "known": math.inf, "threshold": math.inf, "alpha": 1.0}  # others are percentages


class CheckedLabel(TypedDict):
    name: str
    ap: float | None
    support: float | None
    ap_interpolated: float | None
    known: float | None
    threshold: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    alpha: float | None
    never_trained: bool


class CheckedLevel(TypedDict):
    """A level of a hierarchy."""

    level: float | None
    labels: float | None
    scored: float | None
    figures: dict[str, float | None]


class CheckedModel(TypedDict):
    backbone: str
    head: str
    loss: str | None
    freeze: str | None
    task: str | None
    image_size: float | None
    parameters: float | None
    trainable_parameters: float | None


class CheckedData(TypedDict):
    name: str
    split: str
    images: float | None
    bad_images: float | None


class Facts(TypedDict):
    """What stands in results beside their figures."""

    title: str
    created: str
    labels_scored: float | None
    labels_total: float | None
    levels: list[CheckedLevel]
    data: CheckedData
    model: CheckedModel
    definitions: dict[str, str]
    warnings: list[str]
    notes: list[str]
    labels: list[CheckedLabel]


class CheckedResults(Facts, Described):
    """Figures stand beside these, at the places by which `metrics` describes them."""

    mAP: NotRequired[float | None]  # is one of them


def clean_results(results: Any) -> CheckedResults:
    """The results with every key the page uses present and of the right kind."""
    where = "results"
    given = mapping(results, where)
    if need(given, "schema", where) != 1:
        raise wrong(f"{where}.schema", f"is {given['schema']!r:.40}, this version reads 1")
    title, created = (need_text(given, key, where) for key in ("title", "created"))
    for key in missing(given):
        need(given, key, where)
    described = with_descriptions(given)
    facts: Facts = {
        "title": title,
        "created": created,
        "labels_scored": need_number(given, "labels_scored", where),
        "labels_total": need_number(given, "labels_total", where),
        "levels": [
            _level(level, f"{where}.levels[{i}]")
            for i, level in enumerate(items(given.get("levels") or [], f"{where}.levels"))
        ],
        "data": _data(need(given, "data", where), f"{where}.data"),
        "model": _model(need(given, "model", where), f"{where}.model"),
        "definitions": {
            text(k, where): text(v, f"{where}.definitions.{k}")
            for k, v in mapping(given.get("definitions") or {}, f"{where}.definitions").items()
        },
        "warnings": [
            text(warning, f"{where}.warnings") for warning in items(given.get("warnings") or [], f"{where}.warnings")
        ],
        "notes": [text(note, f"{where}.notes") for note in items(given.get("notes") or [], f"{where}.notes")],
        "labels": [
            _label(label, f"{where}.labels[{i}]")
            for i, label in enumerate(items(need(given, "labels", where), f"{where}.labels"))
        ],
    }
    figures, words = clean_figures(described, where)
    return cast(CheckedResults, {**figures, **words, **facts})


def _label(value: Any, where: str) -> CheckedLabel:
    given = mapping(value, where)
    name = need_text(given, "name", where)
    for key in LABEL_NEEDED:
        need(given, key, where)

    def figure(key: LabelFigure) -> float | None:
        return number(given.get(key), f"{where}.{key}", high=LIMITS.get(key, 100.0))

    label: CheckedLabel = {
        "name": name,
        "ap": figure("ap"),
        "support": figure("support"),
        "ap_interpolated": figure("ap_interpolated"),
        "known": figure("known"),
        "threshold": figure("threshold"),
        "precision": figure("precision"),
        "recall": figure("recall"),
        "f1": figure("f1"),
        "alpha": figure("alpha"),
        "never_trained": given.get("never_trained") is True,
    }
    if label["threshold"] is not None:  # a label that is never to be predicted has a threshold above every score
        label["threshold"] = min(label["threshold"], 1.0)
    return label


def _level(value: Any, where: str) -> CheckedLevel:
    given = mapping(value, where)
    level, labels, scored = (need_number(given, key, where) for key in LEVEL)
    own = [text(key, where) for key in given if key not in LEVEL]
    figures = {key: number(given[key], f"{where}.{key}", high=100.0) for key in own}
    return {"level": level, "labels": labels, "scored": scored, "figures": figures}


def _data(value: Any, where: str) -> CheckedData:
    given = mapping(value, where)
    return {
        "name": need_text(given, "name", where),
        "split": need_text(given, "split", where),
        "images": need_number(given, "images", where),
        "bad_images": number(given.get("bad_images"), f"{where}.bad_images"),
    }


def _model(value: Any, where: str) -> CheckedModel:
    given = mapping(value, where)

    def optional(key: str) -> str | None:
        return None if given.get(key) is None else text(given[key], f"{where}.{key}")

    return {
        "backbone": need_text(given, "backbone", where),
        "head": need_text(given, "head", where),
        "loss": optional("loss"),
        "freeze": optional("freeze"),
        "task": optional("task"),
        "image_size": number(given.get("image_size"), f"{where}.image_size"),
        "parameters": number(given.get("parameters"), f"{where}.parameters"),
        "trainable_parameters": number(given.get("trainable_parameters"), f"{where}.trainable_parameters"),
    }

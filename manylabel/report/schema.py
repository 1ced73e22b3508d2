"""What a results file must hold. It is checked here once; the page can trust the outcome.

Measures are percentages 0..100 (null where undefined); thresholds are scores 0..1, alpha is a share 0..1.
"""

from __future__ import annotations

import math
from typing import Any

from manylabel.metric.upgrade import missing, with_descriptions
from manylabel.report.metric_schema import clean_figures
from manylabel.report.value import items, mapping, need, number, text, wrong

LEVEL = ("level", "labels", "scored")
LABEL_NEEDED = ("ap", "support")
LABEL_OPTIONAL = ("ap_interpolated", "known", "threshold", "precision", "recall", "f1", "alpha")
LIMITS = {"support": math.inf, "known": math.inf, "threshold": math.inf, "alpha": 1.0}  # others are percentages


def clean_results(results: Any) -> dict[str, Any]:
    """The results with every key the page uses present and of the right kind."""
    where = "results"
    given = mapping(results, where)
    if need(given, "schema", where) != 1:
        raise wrong(f"{where}.schema", f"is {given['schema']!r:.40}, this version reads 1")
    clean: dict[str, Any] = {key: text(need(given, key, where), f"{where}.{key}") for key in ("title", "created")}
    for key in missing(given):
        need(given, key, where)
    described = with_descriptions(given)
    for key in ("labels_scored", "labels_total"):
        clean[key] = number(need(given, key, where), f"{where}.{key}")
    clean["levels"] = [
        _level(level, f"{where}.levels[{i}]")
        for i, level in enumerate(items(given.get("levels") or [], f"{where}.levels"))
    ]
    clean["data"] = _data(need(given, "data", where), f"{where}.data")
    clean["model"] = _model(need(given, "model", where), f"{where}.model")
    definitions = mapping(given.get("definitions") or {}, f"{where}.definitions")
    clean["definitions"] = {text(k, where): text(v, f"{where}.definitions.{k}") for k, v in definitions.items()}
    clean["warnings"] = [
        text(warning, f"{where}.warnings") for warning in items(given.get("warnings") or [], f"{where}.warnings")
    ]
    clean["notes"] = [text(note, f"{where}.notes") for note in items(given.get("notes") or [], f"{where}.notes")]
    clean["labels"] = [
        _label(label, f"{where}.labels[{i}]")
        for i, label in enumerate(items(need(given, "labels", where), f"{where}.labels"))
    ]
    return {**clean_figures(described, where), **clean}


def _label(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    label: dict[str, Any] = {"name": text(need(given, "name", where), f"{where}.name")}
    for key in LABEL_NEEDED:
        need(given, key, where)
    for key in LABEL_NEEDED + LABEL_OPTIONAL:
        label[key] = number(given.get(key), f"{where}.{key}", high=LIMITS.get(key, 100.0))
    label["never_trained"] = given.get("never_trained") is True
    if label["threshold"] is not None:  # a label that is never to be predicted has a threshold above every score
        label["threshold"] = min(label["threshold"], 1.0)
    return label


def _level(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    counts = {key: number(need(given, key, where), f"{where}.{key}") for key in LEVEL}
    own = [text(key, where) for key in given if key not in LEVEL]
    return counts | {"figures": {key: number(given[key], f"{where}.{key}", high=100.0) for key in own}}


def _data(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    return {
        **{key: text(need(given, key, where), f"{where}.{key}") for key in ("name", "split")},
        "images": number(need(given, "images", where), f"{where}.images"),
        "bad_images": number(given.get("bad_images"), f"{where}.bad_images"),
    }


def _model(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    clean: dict[str, Any] = {key: text(need(given, key, where), f"{where}.{key}") for key in ("backbone", "head")}
    for key in ("loss", "freeze", "task"):
        clean[key] = None if given.get(key) is None else text(given[key], f"{where}.{key}")
    for key in ("image_size", "parameters", "trainable_parameters"):
        clean[key] = number(given.get(key), f"{where}.{key}")
    return clean

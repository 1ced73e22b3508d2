"""What a results file must hold. It is checked here once; the page can trust the outcome.

Measures are percentages 0..100 (null where undefined); thresholds are scores 0..1, alpha is a share 0..1.
"""

from __future__ import annotations

import math
from typing import Any

from manylabel.report.value import items, mapping, need, number, text, wrong

SIX = ("CP", "CR", "CF1", "OP", "OR", "OF1")
NEEDED = ("mAP", *SIX, "calibration_error")
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
    for key in NEEDED:
        clean[key] = number(need(given, key, where), f"{where}.{key}", high=100.0)
    for key in ("mAP_interpolated", "label_calibration_error", "top1", "top5"):
        clean[key] = number(given.get(key), f"{where}.{key}", high=100.0)
    for key in ("labels_scored", "labels_total"):
        clean[key] = number(need(given, key, where), f"{where}.{key}")
    for key in ("top3", "at_thresholds"):
        clean[key] = None if given.get(key) is None else six(given[key], f"{where}.{key}")
    clean["levels"] = [
        _level(level, f"{where}.levels[{i}]")
        for i, level in enumerate(items(given.get("levels") or [], f"{where}.levels"))
    ]
    clean["zero_shot"] = _zero_shot(given["zero_shot"], f"{where}.zero_shot") if given.get("zero_shot") else None
    clean["contradictions"] = number(given.get("contradictions"), f"{where}.contradictions", high=100.0)
    clean["f1_at"] = _f1_at(given.get("f1_at") or {}, f"{where}.f1_at")
    clean["data"] = _data(need(given, "data", where), f"{where}.data")
    clean["model"] = _model(need(given, "model", where), f"{where}.model")
    definitions = mapping(given.get("definitions") or {}, f"{where}.definitions")
    clean["definitions"] = {text(k, where): text(v, f"{where}.definitions.{k}") for k, v in definitions.items()}
    clean["notes"] = [text(note, f"{where}.notes") for note in items(given.get("notes") or [], f"{where}.notes")]
    clean["labels"] = [
        _label(label, f"{where}.labels[{i}]")
        for i, label in enumerate(items(need(given, "labels", where), f"{where}.labels"))
    ]
    return clean


def _label(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    label: dict[str, Any] = {"name": text(need(given, "name", where), f"{where}.name")}
    for key in LABEL_NEEDED:
        need(given, key, where)
    for key in LABEL_NEEDED + LABEL_OPTIONAL:
        label[key] = number(given.get(key), f"{where}.{key}", high=LIMITS.get(key, 100.0))
    if label["threshold"] is not None:  # a label that is never to be predicted has a threshold above every score
        label["threshold"] = min(label["threshold"], 1.0)
    return label


def _level(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    counts = {key: number(need(given, key, where), f"{where}.{key}") for key in ("level", "labels", "scored")}
    return counts | {key: number(given.get(key), f"{where}.{key}", high=100.0) for key in ("mAP", "CF1", "OF1")}


def _zero_shot(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    clean: dict[str, Any] = {
        key: number(need(given, key, where), f"{where}.{key}") for key in ("unseen_labels", "seen_labels")
    }
    for kind in ("zsl", "gzsl", "seen"):
        row = mapping(need(given, kind, where), f"{where}.{kind}")
        f1_at = mapping(row.get("f1_at") or {}, f"{where}.{kind}.f1_at")
        clean[kind] = {
            "mAP": number(need(row, "mAP", f"{where}.{kind}"), f"{where}.{kind}.mAP", high=100.0),
            **{f"f1_{k}": number(f1_at.get(k), f"{where}.{kind}.f1_at.{k}", high=100.0) for k in ("3", "5")},
        }
    baselines = mapping(given.get("baselines") or {}, f"{where}.baselines")
    for name in ("prevalence", "nearest_seen_label"):
        clean[name] = number(baselines.get(name), f"{where}.baselines.{name}", high=100.0)
    return clean


def _f1_at(value: Any, where: str) -> dict[str, dict[str, float | None]]:
    kinds = ("precision", "recall", "f1")
    clean = {}
    for k, row in mapping(value, where).items():
        given = mapping(row, f"{where}.{k}")
        clean[text(k, where)] = {
            kind: number(need(given, kind, f"{where}.{k}"), f"{where}.{k}.{kind}", high=100.0) for kind in kinds
        }
    return clean


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


def six(values: Any, where: str) -> dict[str, float | None]:
    given = mapping(values, where)
    return {key: number(need(given, key, where), f"{where}.{key}", high=100.0) for key in SIX}

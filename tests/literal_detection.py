"""Detection by loops: overlap, box codes, matching, and average precision as the COCO protocol describes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Box = Sequence[float]  # left, top, right, bottom
THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
AREAS = {"all": (0, 1e10), "small": (0, 32**2), "medium": (32**2, 96**2), "large": (96**2, 1e10)}


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def shared(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    return shared(a, b) / (area(a) + area(b) - shared(a, b))


def encode(truth: Box, box: Box, weights: Sequence[float]) -> list[float]:
    w, h, w_t, h_t = box[2] - box[0], box[3] - box[1], truth[2] - truth[0], truth[3] - truth[1]
    x, y, x_t, y_t = box[0] + w / 2, box[1] + h / 2, truth[0] + w_t / 2, truth[1] + h_t / 2
    code = [(x_t - x) / w, (y_t - y) / h, math.log(w_t / w), math.log(h_t / h)]
    return [value * weight for value, weight in zip(code, weights, strict=True)]


def smooth_l1(difference: float, beta: float) -> float:
    d = abs(difference)
    return 0.5 * d * d / beta if d < beta else d - 0.5 * beta


def match(
    box: Box, objects: Sequence[Box], labels: Sequence[int], ignore: Sequence[bool], threshold: float
) -> tuple[int | str, int | None]:
    """(label, 'background' or 'ignored', and the number of the object) of one box."""
    best, found = -1.0, None
    for number, other in enumerate(objects):
        if not ignore[number] and overlap(box, other) > best:
            best, found = overlap(box, other), number
    if found is not None and best >= threshold:
        return labels[found], found
    for number, other in enumerate(objects):
        if ignore[number] and shared(box, other) > area(box) / 2:
            return "ignored", None
    return "background", None


# --- average precision -----------------------------------------------------------------------------------------------


def extent(thing: dict[str, Any], kind: str) -> float:
    return float(thing["mask"].sum()) if kind == "mask" else area(thing["box"])


def agreement(found: dict[str, Any], truth: dict[str, Any], kind: str) -> float:
    """IoU; with a crowd, the share of the detection that lies in it."""
    if kind == "mask":
        both = sum(1 for a, b in zip(found["mask"].flat, truth["mask"].flat, strict=True) if a and b)
        inter = float(both)
    else:
        inter = shared(found["box"], truth["box"])
    union = extent(found, kind)
    if not truth["crowd"]:
        union += extent(truth, kind) - inter
    return inter / union if union else 0.0


def judged(
    truth: list[dict[str, Any]], found: list[dict[str, Any]], threshold: float, limits: tuple[float, float], kind: str
) -> tuple[list[tuple[float, str]], int]:
    """One image and label: (score, 'hit', 'miss' or 'out') of each detection, and how many objects count."""

    def counts(thing: dict[str, Any]) -> bool:
        return not thing["crowd"] and not thing["ignore"] and limits[0] <= thing["area"] <= limits[1]

    real, rest = [t for t in truth if counts(t)], [t for t in truth if not counts(t)]
    taken: list[int] = []
    verdicts = []
    for detection in sorted(found, key=lambda d: -d["score"])[:100]:
        verdict = "miss"
        for group, name in ((real, "hit"), (rest, "out")):
            best, chosen = threshold, None
            for thing in group:
                if id(thing) in taken and not thing["crowd"]:
                    continue
                if agreement(detection, thing, kind) >= best:
                    best, chosen = agreement(detection, thing, kind), thing
            if chosen is not None:
                taken.append(id(chosen))
                verdict = name
                break
        if verdict == "miss" and not limits[0] <= extent(detection, kind) <= limits[1]:
            verdict = "out"
        verdicts.append((detection["score"], verdict))
    return verdicts, len(real)


def average_precision(
    images: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]],
    label: int,
    thresholds: Sequence[float],
    size: str,
    kind: str,
) -> float | None:
    """AP of one label, the mean over thresholds; None where there is nothing to find."""
    values = []
    for threshold in thresholds:
        verdicts, objects = [], 0
        for truth, found in images:
            of_image, real = judged(
                [t for t in truth if t["label"] == label],
                [f for f in found if f["label"] == label],
                threshold,
                AREAS[size],
                kind,
            )
            verdicts += of_image
            objects += real
        if objects == 0:
            return None
        hits = misses = 0
        curve = []  # (recall, precision)
        for _, verdict in sorted(verdicts, key=lambda v: -v[0]):
            hits += verdict == "hit"
            misses += verdict == "miss"
            curve.append((hits / objects, hits / (hits + misses) if hits + misses else 0.0))
        precisions = [max((p for r, p in curve if r >= recall), default=0.0) for recall in RECALLS]
        values.append(sum(precisions) / len(precisions))
    return sum(values) / len(values)

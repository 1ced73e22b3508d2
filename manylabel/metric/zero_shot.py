"""Labels that training never told: judged among themselves (ZSL), together with all others (GZSL), and two baselines."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from manylabel.labels import known, support
from manylabel.metric.average_precision import average_precision, mean_defined
from manylabel.metric.f1 import f1_at_k
from manylabel.metric.judged import Judged
from manylabel.metric.registry import METRICS, Metric, Table

METRICS.notes["zero_shot"] = "ZSL judges unseen labels among themselves, GZSL all labels together; f1_at as above"
TABLE = Table(
    "zero_shot",
    "Zero-shot",
    "{unseen_labels} labels that training never told, known by their text vectors only. F1@k takes the k highest scores of "
    "each image.",
    "Judged among",
    ("mAP", "F1@3", "F1@5"),
)
MEAN_AP = "mean average precision, not interpolated, of {}"
F1_AT = "F1 over all decisions of {} when the k highest scores among them are taken in every image"


def nearest_seen(vectors: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """For each unseen label the seen one with the most similar text vector (cosine). [U]"""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    seen = np.flatnonzero(~unseen)
    nearest: np.ndarray = seen[(unit[unseen] @ unit[seen].T).argmax(axis=1)]
    return nearest


def _columns(judged: Judged, chosen: str) -> np.ndarray:
    assert judged.unseen is not None
    of = {"zsl": judged.unseen, "gzsl": np.ones(len(judged.unseen), bool), "seen": ~judged.unseen}
    return np.flatnonzero(of[chosen])


def _mean_ap(chosen: str) -> Callable[[Judged], float | None]:
    def measure(judged: Judged) -> float | None:
        if judged.unseen is None:
            return None
        columns = _columns(judged, chosen)
        return mean_defined(average_precision(judged.scores[:, columns], judged.targets[:, columns]))[0]

    return measure


def _f1_at(chosen: str, k: int) -> Callable[[Judged], float | None]:
    def measure(judged: Judged) -> float | None:
        if judged.unseen is None or k > len(columns := _columns(judged, chosen)):
            return None
        return f1_at_k(judged.scores[:, columns], judged.targets[:, columns], k).OF1

    return measure


def _prevalence(judged: Judged) -> float | None:
    """What scores without any sense reach: the mean share of positives among the known entries of the scored labels."""
    if judged.unseen is None:
        return None
    matrix = judged.targets[:, judged.unseen]
    positives = support(matrix)
    share = positives / np.maximum(known(matrix).sum(axis=0), 1)
    return float(share[positives > 0].mean()) if (positives > 0).any() else math.nan


def _nearest_seen_label(judged: Judged) -> float | None:
    if judged.unseen is None or judged.vectors is None:
        return None
    borrowed = judged.scores[:, nearest_seen(judged.vectors, judged.unseen)]
    return mean_defined(average_precision(borrowed, judged.targets[:, judged.unseen]))[0]


def _add(
    name: str, title: str, definition: str, measure: Callable[[Judged], float | None], row: str, column: str
) -> None:
    METRICS.add(
        Metric(
            f"zero_shot.{name}",
            title,
            definition,
            measure,
            heading=column,
            holder=f"zero_shot.{name.rpartition('.')[0]}",
            order=80,
            table=TABLE,
            row=row,
            column=column,
        )
    )


for chosen, row, what, of in (
    ("zsl", "Unseen (ZSL), {unseen_labels} labels", "ZSL, {unseen_labels} unseen labels", "the unseen labels alone"),
    ("gzsl", "All (GZSL), {labels_total} labels", "GZSL, all {labels_total} labels", "all labels, seen and unseen"),
    ("seen", "Seen, {seen_labels} labels", "the {seen_labels} seen labels", "the seen labels alone"),
):
    _add(f"{chosen}.mAP", f"mAP ({what})", MEAN_AP.format(of), _mean_ap(chosen), row, "mAP")
    for k in (3, 5):
        _add(f"{chosen}.f1_at.{k}", f"F1@{k} ({what})", F1_AT.format(of), _f1_at(chosen, k), row, f"F1@{k}")
_add(
    "baselines.prevalence",
    "unseen mAP by guessing",
    "for the unseen labels: the share of images that have the label, averaged",
    _prevalence,
    "Guessing",
    "mAP",
)
_add(
    "baselines.nearest_seen_label",
    "unseen mAP by the score of the seen label nearest in meaning",
    "for the unseen labels: each borrows the score of the seen label with the most similar text vector",
    _nearest_seen_label,
    "Nearest seen",
    "mAP",
)

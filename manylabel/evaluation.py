"""Scores and labels to results: the figures (results.json) and what the report shows beside them (details.json)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from manylabel.data.source import ImageSource
from manylabel.data.thumbnail import thumbnail
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, known, support
from manylabel.metric import (
    F1,
    average_precisions,
    calibration,
    cross_fitted_decisions,
    f1_at_k,
    f1_of_decisions,
    f1_scores,
    label_calibration_error,
    mean_defined,
    per_label_of_decisions,
    precision_recall_curve,
    top_k_accuracy,
)
from manylabel.task import MULTI_LABEL, Task
from manylabel.zero_shot import zero_shot_figures

SCHEMA = 1
CURVE_POINTS = 100
MOST_COOCCURRING = 40
MISTAKES = 18
HITS = 6
FEW = 5  # positives below which a figure is mostly chance

DEFINITIONS = {
    "mAP": "mean over labels of average precision, not interpolated: the mean of the precision at each positive",
    "mAP_interpolated": "the same with VOC all-point interpolation; never smaller, not comparable with mAP",
    "CP CR CF1": "precision and recall averaged over labels at score 0.5, and the harmonic mean of these two averages",
    "OP OR OF1": "precision, recall and F1 over all decisions together at score 0.5",
    "top3": "the same six figures when only an image's three highest scores count, and only from 0.5 on",
    "at_thresholds": "the same six figures with each label's own fitted threshold instead of 0.5",
    "f1_at": "over all decisions, when the K highest scores of every image are taken whatever they are",
    "calibration_error": "expected calibration error: mean gap between score and observed frequency, 15 bins",
    "label_calibration_error": "the same for each label on its own, averaged over labels",
    "top1 top5": "share of images whose one label has the highest score, or one of the five highest",
    "zero_shot": "ZSL judges unseen labels among themselves, GZSL all labels together; f1_at as above",
    "levels": "the same figures (F1 at thresholds) for the labels of one level of the hierarchy; level 0 has no parents",
    "contradictions": "share of predicted labels whose parent is not predicted for that image (each label at its threshold)",
}


def judge(
    scores: np.ndarray,
    matrix: np.ndarray,
    labels: LabelSpace,
    thresholds: np.ndarray,
    *,
    fitted_here: bool,
    hierarchy: Hierarchy | None = None,
    task: Task = MULTI_LABEL,
    unseen: np.ndarray | None = None,
    vectors: np.ndarray | None = None,
) -> dict[str, Any]:
    """All figures of scores [n, N] against labels [n, N], in percent; None where a figure is undefined.

    `fitted_here` says that the thresholds were fitted on these very images; precision and recall at thresholds are
    then cross-fitted (each half judged with thresholds of the other), so that they are not flattered.
    `unseen` [N] are labels that training never told, with text `vectors` [N, d] for a baseline.
    """
    if not len(scores):
        raise DataError("there is no readable image to judge the model on")
    ap = average_precisions(scores, matrix)
    cross_fitted = fitted_here and not task.single
    decisions = cross_fitted_decisions(scores, matrix) if cross_fitted else task.decide(scores, thresholds)
    if cross_fitted and unseen is not None:  # nobody may fit thresholds of labels that are unseen
        decisions[:, unseen] = scores[:, unseen] >= thresholds[unseen]
    at_label = per_label_of_decisions(decisions, matrix)
    mean_ap, scored = mean_defined(ap["none"])
    rows = zip(
        labels, ap["none"], ap["voc"], support(matrix), known(matrix).sum(axis=0), thresholds, *at_label, strict=True
    )
    notes = []
    if scored < len(labels):
        notes.append(f"{len(labels) - scored} of {len(labels)} labels have no positive here and are not scored")
    few = int(((support(matrix) > 0) & (support(matrix) < FEW)).sum())
    if few:
        notes.append(f"{few} labels have fewer than {FEW} positives here: their figures, and so the means, are rough")
    one_sided = int(((matrix == ABSENT).sum(axis=0) == 0)[support(matrix) > 0].sum())
    if one_sided:
        notes.append(
            f"{one_sided} labels are absent from no image here: an average precision of 100 says nothing of them"
        )
    if task.single:
        notes.append("each image gets the one label with its highest score; thresholds play no part")
    if cross_fitted:
        notes.append(
            "the stored thresholds were fitted on these images; precision and recall at thresholds are cross-fitted "
            "(each half of the images is judged with thresholds from the other half)"
        )
    return {
        "mAP": _percent(mean_ap),
        "mAP_interpolated": _percent(mean_defined(ap["voc"])[0]),
        **({f"top{k}": _percent(top_k_accuracy(scores, matrix, k)[0]) for k in (1, 5)} if task.single else {}),
        **_six(f1_scores(scores, matrix)),
        "top3": _six(f1_scores(scores, matrix, top_k=3)),
        "at_thresholds": _six(f1_of_decisions(decisions, matrix)),
        "f1_at": {str(k): _three(f1_at_k(scores, matrix, k)) for k in (3, 5) if k <= len(labels)},
        "calibration_error": _percent(calibration(scores, matrix).error),
        "label_calibration_error": _percent(mean_defined(label_calibration_error(scores, matrix))[0]),
        "labels_scored": scored,
        "labels_total": len(labels),
        **({} if unseen is None else {"zero_shot": zero_shot_figures(scores, matrix, unseen, vectors)}),
        **(_by_level(ap["none"], decisions, matrix, labels, hierarchy) if hierarchy is not None else {}),
        "definitions": DEFINITIONS,
        "notes": notes,
        "labels": [
            {
                "name": name,
                "ap": _percent(plain),
                "ap_interpolated": _percent(voc),
                "support": int(positives),
                "known": int(checked),
                "threshold": round(float(threshold), 6),
                "precision": _percent(precision),
                "recall": _percent(recall),
                "f1": _percent(f1),
                **({} if unseen is None else {"unseen": bool(unseen[labels.index(name)])}),
            }
            for name, plain, voc, positives, checked, threshold, precision, recall, f1 in rows
        ],
    }


def _by_level(
    ap: np.ndarray, decisions: np.ndarray, matrix: np.ndarray, labels: LabelSpace, hierarchy: Hierarchy
) -> dict[str, Any]:
    """The figures of each level, and how often the decisions contradict the hierarchy."""
    known_as = [hierarchy.name(name) for name in labels]
    level = np.array([-1 if name is None else hierarchy.level(name) for name in known_as])
    if level.max() < 1:
        return {}  # a plain list of labels
    rows = []
    for number in range(level.max() + 1):
        columns = np.flatnonzero(level == number)
        mean_ap, scored = mean_defined(ap[columns])
        f1 = f1_of_decisions(decisions[:, columns], matrix[:, columns])
        rows.append(
            {
                "level": number,
                "labels": len(columns),
                "scored": scored,
                "mAP": _percent(mean_ap),
                "CF1": _percent(f1.CF1),
                "OF1": _percent(f1.OF1),
            }
        )
    column = {name: i for i, name in enumerate(known_as)}
    pairs = [(i, column[p]) for i, name in enumerate(known_as) if name for p in hierarchy.parents(name) if p in column]
    alone = np.zeros(decisions.shape, bool)
    for child, parent in pairs:
        alone[:, child] |= decisions[:, child] & ~decisions[:, parent]
    made = int(decisions[:, sorted({child for child, _ in pairs})].sum()) if pairs else 0
    return {"levels": rows, "contradictions": _percent(alone.sum() / made if made else math.nan)}


def describe(title: str, data: dict[str, Any], model: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """results.json: who was judged on what, then the figures."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return {"schema": SCHEMA, "title": title, "created": created, "data": data, "model": model, **figures}


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * float(value), 4)


def _six(f1: F1) -> dict[str, float | None]:
    return {name: _percent(getattr(f1, name)) for name in ("CP", "CR", "CF1", "OP", "OR", "OF1")}


def _three(f1: F1) -> dict[str, float | None]:
    return {"precision": _percent(f1.OP), "recall": _percent(f1.OR), "f1": _percent(f1.OF1)}


# --- details for the report ---------------------------------------------------------------------------------------


def details(
    scores: np.ndarray,
    matrix: np.ndarray,
    labels: LabelSpace,
    keys: Sequence[str] | np.ndarray,
    source: ImageSource,
    history: list[dict[str, Any]],
) -> dict[str, Any]:
    """Curves, calibration bins, co-occurrence, and the worst mistakes and clearest hits with thumbnails."""
    bins = calibration(scores, matrix)
    return {
        "schema": SCHEMA,
        "curves": [_curve(scores[:, i], matrix[:, i]) for i in range(len(labels))],
        "calibration": {
            "edges": np.linspace(0, 1, len(bins.count) + 1).round(6).tolist(),
            "score": _rounded(bins.mean_score),
            "observed": _rounded(bins.frequency),
            "count": bins.count.tolist(),
        },
        "cooccurrence": _cooccurrence(matrix, labels),
        "history": history,
        "mistakes": _mistakes(scores, matrix, labels, keys, source),
        "hits": _hits(scores, matrix, labels, keys, source),
    }


def _rounded(values: np.ndarray) -> list[float | None]:
    return [None if math.isnan(v) else round(float(v), 4) for v in values]


def _curve(scores: np.ndarray, states: np.ndarray) -> dict[str, list[float | None]] | None:
    if not (states == PRESENT).any():
        return None
    precision, recall, _ = precision_recall_curve(scores, states)
    pick = np.unique(np.linspace(0, len(recall) - 1, CURVE_POINTS).round().astype(int))
    steps = np.unique(np.searchsorted(recall, np.linspace(0, 1, CURVE_POINTS)).clip(0, len(recall) - 1))
    pick = steps if len(steps) > 1 else pick  # even in recall, where the curve is read
    return {"precision": _rounded(precision[pick]), "recall": _rounded(recall[pick])}


def _cooccurrence(matrix: np.ndarray, labels: LabelSpace) -> dict[str, Any]:
    chosen = np.sort(np.argsort(-support(matrix), kind="stable")[:MOST_COOCCURRING])
    present = (matrix[:, chosen] == PRESENT).astype(np.float32)
    counts = (present.T @ present).round().astype(int)
    return {"names": [labels.names[i] for i in chosen], "counts": counts.tolist()}


def _mistakes(
    scores: np.ndarray, matrix: np.ndarray, labels: LabelSpace, keys: Sequence[str] | np.ndarray, source: ImageSource
) -> list[dict[str, Any]]:
    """Half the most confident false alarms, half the most surely missed labels; one per image."""
    found = []
    for kind, state, sign in (("missed", PRESENT, 1), ("false alarm", ABSENT, -1)):
        ranked = np.where(matrix == state, sign * scores, np.inf)
        worst_label = ranked.argmin(axis=1)
        worst = ranked[np.arange(len(ranked)), worst_label]
        wrong = np.flatnonzero(worst < (0.5 if sign > 0 else -0.5))
        for row in wrong[np.argsort(worst[wrong], kind="stable")][: MISTAKES // 2]:
            found.append(_shown(kind, worst_label[row], scores[row], matrix[row], labels, str(keys[row]), source))
    return found


def _hits(
    scores: np.ndarray, matrix: np.ndarray, labels: LabelSpace, keys: Sequence[str] | np.ndarray, source: ImageSource
) -> list[dict[str, Any]]:
    """The surest labels that are there: the best image of a label, different labels and images."""
    ranked = np.where(matrix == PRESENT, scores, -np.inf)
    best = ranked.argmax(axis=0)  # [N]: row of each label's best image
    top = ranked[best, np.arange(len(labels))]
    chosen: dict[int, int] = {}  # row → label
    for label in np.argsort(-top, kind="stable"):
        if top[label] >= 0.5 and len(chosen) < HITS:
            chosen.setdefault(int(best[label]), int(label))
    return [
        _shown("hit", label, scores[row], matrix[row], labels, str(keys[row]), source) for row, label in chosen.items()
    ]


def _shown(
    kind: str,
    label: int,
    scores: np.ndarray,
    states: np.ndarray,
    labels: LabelSpace,
    key: str,
    source: ImageSource,
) -> dict[str, Any]:
    said = {PRESENT: True, ABSENT: False, UNKNOWN: None}
    return {
        "file": key,
        "thumbnail": thumbnail(source, key),
        "kind": kind,
        "label": labels.names[label],
        "score": round(float(scores[label]), 4),
        "present": [labels.names[i] for i in np.flatnonzero(states == PRESENT)],
        "top": [
            {"label": labels.names[i], "score": round(float(scores[i]), 4), "present": said[int(states[i])]}
            for i in np.argsort(-scores, kind="stable")[:5]
        ],
    }

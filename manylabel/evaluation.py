"""Scores and labels to results: the figures (results.json) and what the report shows beside them (details.json)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict

import numpy as np

from manylabel.core.results import FigureTree, HistoryRow, Results
from manylabel.data.source import ImageSource
from manylabel.data.thumbnail import thumbnail
from manylabel.error import DataError
from manylabel.figure import at, put
from manylabel.hierarchy import Hierarchy
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, known, never_trained, support
from manylabel.metric import (
    METRICS,
    Judged,
    Metric,
    calibration,
    cross_fitted_decisions,
    mean_defined,
    per_label_of_decisions,
    precision_recall_curve,
)
from manylabel.metric import describe as describe_metrics
from manylabel.metric.label_kind import LABEL_KINDS, LabelKind
from manylabel.metric.level import by_level, levels_of, parents_of
from manylabel.storage.output import MADE_BY

SCHEMA = 1
CURVE_POINTS = 100
MOST_COOCCURRING = 40
MISTAKES = 18
HITS = 6
NAMED = 10  # labels in a note
FEW = 5  # positives below which a figure is mostly chance


class LabelRow(TypedDict):
    """A label in results.json; what its head knows of it comes on top. None where a figure is undefined."""

    name: str
    ap: float | None
    ap_interpolated: float | None
    support: int
    known: int
    threshold: float
    precision: float | None
    recall: float | None
    f1: float | None
    unseen: NotRequired[bool]
    never_trained: NotRequired[bool]


class Curve(TypedDict):
    precision: list[float | None]
    recall: list[float | None]


class Bins(TypedDict):
    """Of scores: how often labels with such a score were there."""

    edges: list[float]
    score: list[float | None]  # the mean
    observed: list[float | None]
    count: list[int]


class Cooccurrence(TypedDict):
    names: list[str]
    counts: list[list[int]]  # images with both


class Guess(TypedDict):
    label: str
    score: float
    present: bool | None  # None: nobody said


class Shown(TypedDict):
    """An image that the report shows for one label."""

    file: str
    thumbnail: str | None
    kind: str
    label: str
    score: float
    present: list[str]
    top: list[Guess]


class Details(TypedDict):
    """details.json; what else a run can tell comes on top."""

    schema: int
    curves: list[Curve | None]  # of each label
    calibration: Bins
    cooccurrence: Cooccurrence
    history: list[HistoryRow]
    mistakes: list[Shown]
    hits: list[Shown]


def judge(
    scores: np.ndarray,
    matrix: np.ndarray,
    labels: LabelSpace,
    thresholds: np.ndarray,
    *,
    fitted_here: bool,
    hierarchy: Hierarchy | None = None,
    task: LabelKind = LABEL_KINDS["multi_label"],
    unseen: np.ndarray | None = None,
    vectors: np.ndarray | None = None,
    training_images: np.ndarray | None = None,
) -> Results:
    """All figures of scores [n, N] against labels [n, N], in percent; None where a figure is undefined.

    `training_images` [N] is how many images with each label the model was trained on, where that is known. What it was
    never trained on counts in no figure but the label's own row.

    `fitted_here` says that the thresholds were fitted on these very images; precision and recall at thresholds are
    then cross-fitted (each half judged with thresholds of the other), so that they are not flattered.
    `unseen` [N] are labels that training never told, with text `vectors` [N, d] for a baseline.
    """
    if not len(scores):
        raise DataError("there is no readable image to judge the model on")
    cross_fitted = fitted_here and not task.one_label
    decisions = _cross_fitted(task, scores, matrix, labels) if cross_fitted else task.decide(scores, thresholds)
    if cross_fitted and unseen is not None:  # nobody may fit thresholds of labels that are unseen
        decisions[:, unseen] = scores[:, unseen] >= thresholds[unseen]
    never = never_trained(training_images, unseen, len(labels))
    parents = None if hierarchy is None else parents_of(labels.names, hierarchy)
    judged = Judged(scores, matrix, labels.names, decisions, never, unseen, vectors, parents)
    rows = _rows(judged, decisions, thresholds, never)
    notes = _notes_on_labels(judged, rows)
    if task.one_label:
        notes.append("each image gets the one label with its highest score; thresholds play no part")
    if cross_fitted:
        notes.append(
            "the stored thresholds were fitted on these images; precision and recall at thresholds are cross-fitted "
            "(each half of the images is judged with thresholds from the other half)"
        )
    zero_shot: FigureTree = (
        {} if unseen is None else {"unseen_labels": int(unseen.sum()), "seen_labels": int((~unseen).sum())}
    )
    results: FigureTree = {"zero_shot": zero_shot} if zero_shot else {}
    held = [metric for metric in METRICS.of(task.kind) if _hold(results, metric, judged)]
    levels: dict[str, list[dict[str, float | None]]] = {}
    if judged.parents is not None and hierarchy is not None:
        by = by_level(judged, levels_of(labels.names, hierarchy), held)
        levels["levels"] = [{key: _rounded(value) for key, value in row.items()} for row in by]
    counts = {"labels_scored": mean_defined(judged.ap)[1], "labels_total": len(labels)}
    return {
        **results,
        **levels,
        **counts,
        **describe_metrics(held, task.kind, {**counts, **zero_shot}),
        "definitions": METRICS.definitions(),
        "notes": notes,
        "labels": rows,
    }


def _cross_fitted(task: LabelKind, scores: np.ndarray, matrix: np.ndarray, labels: LabelSpace) -> np.ndarray:
    """Each half of the images decided with the task's thresholds of the other half. [n, N] bool"""

    def fit(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return task.thresholds(Judged(scores, targets, labels.names))

    return cross_fitted_decisions(scores, matrix, fit=fit)


def _rows(judged: Judged, decisions: np.ndarray, thresholds: np.ndarray, never: np.ndarray) -> list[LabelRow]:
    ap, matrix, unseen = judged.every_ap, judged.targets, judged.unseen
    counts = support(matrix), known(matrix).sum(axis=0)
    at_label = per_label_of_decisions(decisions, matrix)
    rows: list[LabelRow] = []
    columns = zip(judged.names, ap["none"], ap["voc"], *counts, thresholds, *at_label, strict=True)
    for i, (name, plain, voc, positives, checked, threshold, precision, recall, f1) in enumerate(columns):
        row: LabelRow = {
            "name": name,
            "ap": _percent(plain),
            "ap_interpolated": _percent(voc),
            "support": int(positives),
            "known": int(checked),
            "threshold": round(float(threshold), 6),
            "precision": _percent(precision),
            "recall": _percent(recall),
            "f1": _percent(f1),
        }
        if unseen is not None:
            row["unseen"] = bool(unseen[i])
        if never[i]:
            row["never_trained"] = True
        rows.append(row)
    return rows


def _notes_on_labels(judged: Judged, rows: Sequence[LabelRow]) -> list[str]:
    """Whose figures say little, and why."""
    positives, counted, notes = support(judged.counted), judged.counted, []
    if nowhere := sum(row["support"] == 0 for row in rows):
        notes.append(f"{nowhere} of {len(rows)} labels have no positive here and are not scored")
    notes += never_trained_notes([row for row in rows if row.get("never_trained")])
    if few := int(((positives > 0) & (positives < FEW)).sum()):
        notes.append(f"{few} labels have fewer than {FEW} positives here: their figures, and so the means, are rough")
    if one_sided := int(((counted == ABSENT).sum(axis=0) == 0)[positives > 0].sum()):
        notes.append(
            f"{one_sided} labels are absent from no image here: an average precision of 100 says nothing of them"
        )
    return notes


def _hold(results: FigureTree, metric: Metric, judged: Judged) -> bool:
    """Put the figure at its place, if it has a meaning here; whether it has."""
    value = metric.measure(judged)
    before = at(results, metric.holder.rpartition(".")[0])
    if value is not None:
        put(results, metric.where, _rounded(value))
    elif metric.holder and before is not None and at(results, metric.holder) is None:
        put(results, metric.holder, {})
    return value is not None


def never_trained_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which labels are left out for that (`rows` of results), and how the model does on those that are here."""
    here = [row for row in rows if row["support"]]
    if not here:
        return []
    said = [f"{row['name']} (AP {row['ap']:.1f}, {row['support']} images)" for row in here[:NAMED]]
    more = f" and {len(here) - NAMED} more" if len(here) > NAMED else ""
    return [
        f"{len(here)} labels had no training image, so the model cannot know them; they count in no other figure: "
        f"{', '.join(said)}{more}"
    ]


def describe(title: str, data: Mapping[str, Any], model: Mapping[str, Any], figures: Results) -> Results:
    """results.json: who was judged on what, then the figures."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    made = {"schema": SCHEMA, "made_by": MADE_BY, "title": title, "created": created}
    return {**made, "data": data, "model": model, **figures}


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * float(value), 4)


# --- details for the report ---------------------------------------------------------------------------------------


def details(
    scores: np.ndarray,
    matrix: np.ndarray,
    labels: LabelSpace,
    keys: Sequence[str] | np.ndarray,
    source: ImageSource,
    history: list[HistoryRow],
) -> Details:
    """Curves, calibration bins, co-occurrence, and the worst mistakes and clearest hits with thumbnails."""
    bins = calibration(scores, matrix)
    return {
        "schema": SCHEMA,
        "curves": [_curve(scores[:, i], matrix[:, i]) for i in range(len(labels))],
        "calibration": {
            "edges": np.linspace(0, 1, len(bins.count) + 1).round(6).tolist(),
            "score": _all_rounded(bins.mean_score),
            "observed": _all_rounded(bins.frequency),
            "count": bins.count.tolist(),
        },
        "cooccurrence": _cooccurrence(matrix, labels),
        "history": history,
        "mistakes": _mistakes(scores, matrix, labels, keys, source),
        "hits": _hits(scores, matrix, labels, keys, source),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 4)


def _all_rounded(values: np.ndarray) -> list[float | None]:
    return [_rounded(float(value)) for value in values]


def _curve(scores: np.ndarray, states: np.ndarray) -> Curve | None:
    if not (states == PRESENT).any():
        return None
    precision, recall, _ = precision_recall_curve(scores, states)
    pick = np.unique(np.linspace(0, len(recall) - 1, CURVE_POINTS).round().astype(int))
    steps = np.unique(np.searchsorted(recall, np.linspace(0, 1, CURVE_POINTS)).clip(0, len(recall) - 1))
    pick = steps if len(steps) > 1 else pick  # even in recall, where the curve is read
    return {"precision": _all_rounded(precision[pick]), "recall": _all_rounded(recall[pick])}


def _cooccurrence(matrix: np.ndarray, labels: LabelSpace) -> Cooccurrence:
    chosen = np.sort(np.argsort(-support(matrix), kind="stable")[:MOST_COOCCURRING])
    present = (matrix[:, chosen] == PRESENT).astype(np.float32)
    counts = (present.T @ present).round().astype(int)
    return {"names": [labels.names[i] for i in chosen], "counts": counts.tolist()}


def _mistakes(
    scores: np.ndarray, matrix: np.ndarray, labels: LabelSpace, keys: Sequence[str] | np.ndarray, source: ImageSource
) -> list[Shown]:
    """Half the most confident false alarms, half the most surely missed labels; one per image."""
    found: list[Shown] = []
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
) -> list[Shown]:
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
) -> Shown:
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

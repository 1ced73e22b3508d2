"""Labels with parents: the figures of each level of the hierarchy, and decisions that contradict it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from manylabel.hierarchy import Hierarchy
from manylabel.metric.average_precision import mean_defined
from manylabel.metric.judged import Judged
from manylabel.metric.registry import METRICS, Metric

METRICS.notes["levels"] = (
    "the same figures (F1 at thresholds) for the labels of one level of the hierarchy; level 0 has no parents"
)


def levels_of(names: Sequence[str], hierarchy: Hierarchy) -> np.ndarray:
    """[N] the level of each label, -1 for one that the hierarchy does not know."""
    known_as = [hierarchy.name(name) for name in names]
    return np.array([-1 if name is None else hierarchy.level(name) for name in known_as])


def parents_of(names: Sequence[str], hierarchy: Hierarchy) -> list[tuple[int, int]] | None:
    """(label, its parent) of all that have one among these; None where the labels are a plain list."""
    if levels_of(names, hierarchy).max() < 1:
        return None
    known_as = [hierarchy.name(name) for name in names]
    column = {name: i for i, name in enumerate(known_as)}
    return [(i, column[p]) for i, name in enumerate(known_as) if name for p in hierarchy.parents(name) if p in column]


def by_level(judged: Judged, level: np.ndarray, metrics: list[Metric]) -> list[dict[str, float | None]]:
    """A row for each level: its labels, and of `metrics` those that have a place there."""
    rows = []
    for number in range(level.max() + 1):
        part = judged.part(np.flatnonzero(level == number))
        row: dict[str, float | None] = {
            "level": number,
            "labels": len(part.scores.T),
            "scored": mean_defined(part.ap)[1],
        }
        rows.append(row | {m.by_level: m.measure(part) for m in metrics if m.by_level})
    return rows


def _contradictions(judged: Judged) -> float | None:
    pairs, decisions = judged.parents, judged.decisions
    if pairs is None or decisions is None:
        return None
    alone = np.zeros(decisions.shape, bool)
    for child, parent in pairs:
        alone[:, child] |= decisions[:, child] & ~decisions[:, parent]
    made = int(decisions[:, sorted({child for child, _ in pairs})].sum()) if pairs else 0
    return alone.sum() / made if made else math.nan


METRICS.add(
    Metric(
        "contradictions",
        "predicted labels without a predicted parent",
        "share of predicted labels whose parent is not predicted for that image (each label at its threshold)",
        _contradictions,
        better="lower",
        order=90,
    )
)

"""Mean average precision by object size: of one run, and of two with intervals for the difference."""

from __future__ import annotations

import math

import numpy as np

from manylabel import console
from manylabel.compare.bootstrap import drawn_ap, interval
from manylabel.core.hard_findings import SizeDifference, SizeFigures
from manylabel.hard import SIZES, Pairs, scored_labels, sized_matrix
from manylabel.labels import support
from manylabel.metric import average_precision, mean_defined
from manylabel.score_file import Scores


def size_figures(scores: Scores, pairs: Pairs, size: np.ndarray) -> list[SizeFigures]:
    """For each size: labels with enough positives of it, how many positives they have, and their mean AP in percent."""
    rows: list[SizeFigures] = []
    for which in range(len(SIZES)):
        sized = sized_matrix(scores.matrix, pairs, size, which)
        chosen = scored_labels(sized)
        value, _ = mean_defined(average_precision(scores.scores[:, chosen], sized[:, chosen]))
        positives = int(support(sized)[chosen].sum())
        rows.append({"labels_scored": len(chosen), "positives": positives, "mAP": _percent(value)})
    return rows


def size_differences(
    first: Scores, second: Scores, pairs: Pairs, size: np.ndarray, weights: np.ndarray | None
) -> list[SizeDifference]:
    """For each size: mean AP of both runs over the same labels, and the difference with its interval over images."""
    rows: list[SizeDifference] = []
    with console.counting("drawing images anew", 2 * len(SIZES)) as advance:
        for which, name in enumerate(SIZES):
            sized = sized_matrix(first.matrix, pairs, size, which)
            chosen = scored_labels(sized)
            matrix = sized[:, chosen]
            ap = [average_precision(each.scores[:, chosen], matrix) for each in (first, second)]
            means = [mean_defined(values)[0] for values in ap]
            low, high = math.nan, math.nan
            if weights is not None and len(chosen):
                drawn = []
                for each in (first, second):
                    drawn.append(drawn_ap(each.scores[:, chosen], matrix, weights))
                    advance(1)
                gap = drawn[1] - drawn[0]  # [draws, labels]
                low, high = interval(np.nanmean(gap[~np.isnan(gap).all(axis=1)], axis=1))
            rows.append(
                {
                    "name": name,
                    "labels_scored": len(chosen),
                    "positives": int(support(matrix).sum()),
                    "first": _percent(means[0]),
                    "second": _percent(means[1]),
                    "change": _percent(means[1] - means[0]),
                    "low": _percent(low),
                    "high": _percent(high),
                }
            )
    return rows


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * float(value), 4)

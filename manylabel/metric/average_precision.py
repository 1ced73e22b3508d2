"""Average precision per label, from one sort.

"none" is the mean of the precision at each positive (ML-Decoder, ASL, RM; scikit-learn's figure).
"voc" takes at each positive the best precision at that recall or a higher one (Query2Label, VOC 2010): never smaller.
Entries with the same score cannot be told apart, so they are cut together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from manylabel.labels import PRESENT, known
from manylabel.metric.block import as_matrices, check_values, each_label
from manylabel.metric.registry import METRICS, MULTI_LABEL, Metric

if TYPE_CHECKING:
    from manylabel.metric.judged import Judged

Interpolation = Literal["none", "voc"]


class Cuts(NamedTuple):
    """What `score >= cut` decides, for a cut at each positive's score; lowest first, tied positives repeat."""

    score: np.ndarray  # [positives]
    hits: np.ndarray  # [positives] positives at or above the cut
    predicted: np.ndarray  # [positives] entries at or above the cut


def positive_cuts(scores: np.ndarray, positive: np.ndarray) -> Cuts:
    """The cuts that matter for one label: between two positives, a lower cut only adds mistakes."""
    ranked = np.sort(scores)
    positives = np.sort(scores[positive])
    return Cuts(
        positives,
        positives.size - np.searchsorted(positives, positives),
        ranked.size - np.searchsorted(ranked, positives),
    )


def _both(scores: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    if not positive.any():
        return np.nan, np.nan
    cuts = positive_cuts(scores, positive)
    precision = cuts.hits / cuts.predicted
    # From the lowest score up, recall falls: the best so far is the best at this recall or a higher one.
    return float(precision.mean()), float(np.maximum.accumulate(precision).mean())


def average_precisions(scores: np.ndarray, targets: np.ndarray) -> dict[str, np.ndarray]:
    """Both kinds of AP, {"none": [L], "voc": [L]}; NaN for a label without a known positive."""
    none, voc = np.array(each_label(_both, scores, targets), np.float64).reshape(-1, 2).T
    return {"none": none, "voc": voc}


def average_precision(scores: np.ndarray, targets: np.ndarray, interpolation: Interpolation = "none") -> np.ndarray:
    """AP of every label [L]; NaN for a label without a known positive."""
    if interpolation not in ("none", "voc"):
        raise ValueError(f"interpolation is 'none' or 'voc', not {interpolation!r}")
    return average_precisions(scores, targets)[interpolation]


def mean_defined(values: np.ndarray) -> tuple[float, int]:
    """(mean, how many) of the values that are not NaN; the mean of none is NaN."""
    defined = values[~np.isnan(values)]
    return (float(defined.mean()) if defined.size else float("nan")), defined.size


def mean_average_precision(
    scores: np.ndarray, targets: np.ndarray, interpolation: Interpolation = "none"
) -> tuple[float, int]:
    """(mAP, labels scored): labels without a known positive have no AP and are left out."""
    return mean_defined(average_precision(scores, targets, interpolation))


def precision_recall_curve(scores: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(precision, recall, threshold) of `score >= threshold` at every distinct score of one label, highest first.

    No points are added at the ends. Recall is NaN throughout when no known entry is positive.
    """
    if np.ndim(scores) != 1:
        raise ValueError(f"scores of one label are [images], not {np.shape(scores)}")
    columns = as_matrices(np.asarray(scores)[:, None], np.asarray(targets)[..., None])
    check_values(*columns, first_label=0, probabilities=False)
    score, state = columns[0][:, 0], columns[1][:, 0]
    given = known(state)
    ranked = np.sort(score[given])
    positives = np.sort(score[given & (state == PRESENT)])
    threshold, first = (rising[::-1] for rising in np.unique(ranked, return_index=True))
    hits = positives.size - np.searchsorted(positives, threshold)
    recall = hits / positives.size if positives.size else np.full(hits.size, np.nan)
    return hits / (ranked.size - first), recall, threshold


# --- as metrics -----------------------------------------------------------------------------------------------------

DEFINITION = "mean over labels of average precision, not interpolated: the mean of the precision at each positive"


def _mean(judged: Judged) -> float:
    return mean_defined(judged.ap)[0]


def _mean_interpolated(judged: Judged) -> float:
    return mean_defined(judged.ap_interpolated)[0]


METRICS.add(
    Metric(
        "mAP",
        "mAP (not interpolated)",
        DEFINITION,
        _mean,
        heading="mAP",
        headline=True,
        goals=(MULTI_LABEL,),
        order=0,
        by_level="mAP",
    )
)
METRICS.add(
    Metric(
        "mAP_interpolated",
        "mAP (VOC-interpolated)",
        "the same with VOC all-point interpolation; never smaller, not comparable with mAP",
        _mean_interpolated,
        heading="Interpolated",
        order=5,
    )
)

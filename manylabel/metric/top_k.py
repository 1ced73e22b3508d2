"""Top-1 and top-5 accuracy of one label per image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manylabel.labels import PRESENT
from manylabel.metric.registry import METRICS, SINGLE_LABEL, Metric

if TYPE_CHECKING:
    from manylabel.metric.judged import Judged


def top_k_accuracy(scores: np.ndarray, matrix: np.ndarray, k: int) -> tuple[float, int]:
    """(share of images whose label is among the k highest scores, images judged); NaN where no image has one label.

    Of equal scores the label that comes first counts as higher, as in predictions.
    """
    judged = (matrix == PRESENT).sum(axis=1) == 1
    if not judged.any():
        return float("nan"), 0
    scores, label = scores[judged], (matrix[judged] == PRESENT).argmax(axis=1)
    own = np.take_along_axis(scores, label[:, None], axis=1)
    earlier = np.arange(scores.shape[1]) < label[:, None]
    ahead = ((scores > own) | ((scores == own) & earlier)).sum(axis=1)
    return float((ahead < k).mean()), int(judged.sum())


# --- as metrics -----------------------------------------------------------------------------------------------------

METRICS.notes["top1 top5"] = "share of images whose one label has the highest score, or one of the five highest"


def _top_1(judged: Judged) -> float:
    return top_k_accuracy(judged.scores, judged.targets, 1)[0]


def _top_5(judged: Judged) -> float:
    return top_k_accuracy(judged.scores, judged.targets, 5)[0]


METRICS.add(
    Metric(
        "top-1",
        "top-1 accuracy",
        "share of images whose label has the highest score",
        _top_1,
        (SINGLE_LABEL,),
        heading="Top 1",
        place="top1",
        headline=True,
        goals=(SINGLE_LABEL,),
        order=1,
    )
)
METRICS.add(
    Metric(
        "top-5",
        "top-5 accuracy",
        "share of images whose label is among the five highest scores",
        _top_5,
        (SINGLE_LABEL,),
        heading="Top 5",
        place="top5",
        headline=True,
        order=2,
        fewest_labels=6,
    )
)

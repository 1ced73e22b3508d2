"""Top-1 and top-5 accuracy of one label per image."""

from __future__ import annotations

import numpy as np

from manylabel.labels import PRESENT


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

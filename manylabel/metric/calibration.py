"""Calibration: of the entries scored about p, is a share of about p present?

Scores are put in bins of equal width; the expected calibration error (ECE) is the mean gap between score and
observed share over the bins, weighted by their entries. A score on an edge belongs to the bin above; 1 to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from manylabel.labels import PRESENT, known
from manylabel.metric.average_precision import mean_defined
from manylabel.metric.block import each_label, row_blocks
from manylabel.metric.registry import METRICS, Metric

if TYPE_CHECKING:
    from manylabel.metric.judged import Judged


@dataclass(frozen=True)
class Calibration:
    """The error over all known entries, and what is in each bin (NaN in an empty one)."""

    error: float
    mean_score: np.ndarray  # [bins]
    frequency: np.ndarray  # [bins] share of entries that are present
    count: np.ndarray  # [bins] known entries


def calibration(scores: np.ndarray, targets: np.ndarray, bins: int = 15) -> Calibration:
    """ECE of all labels' known entries together; the error is NaN when nothing is known."""
    _check_bins(bins)
    count, present, total = np.zeros(bins, np.int64), np.zeros(bins, np.int64), np.zeros(bins)
    for _, block, states in row_blocks(scores, targets, probabilities=True):
        given = known(states)
        score, bin_of = block[given], _bin(block[given], bins)
        count += np.bincount(bin_of, minlength=bins)
        present += np.bincount(bin_of[states[given] == PRESENT], minlength=bins)
        total += np.bincount(bin_of, weights=score, minlength=bins)
    filled = count > 0
    mean_score = np.divide(total, count, out=np.full(bins, np.nan), where=filled)
    frequency = np.divide(present, count, out=np.full(bins, np.nan), where=filled)
    error = float(np.abs(total - present).sum() / count.sum()) if filled.any() else float("nan")
    return Calibration(error, mean_score, frequency, count)


def label_calibration_error(scores: np.ndarray, targets: np.ndarray, bins: int = 15) -> np.ndarray:
    """ECE of each label on its own [L]; NaN for a label without a known positive."""
    _check_bins(bins)
    return np.array(each_label(partial(_error, bins=bins), scores, targets, probabilities=True), np.float64)


def _error(scores: np.ndarray, positive: np.ndarray, bins: int) -> float:
    if not positive.any():
        return float("nan")
    gap = np.bincount(_bin(scores, bins), weights=scores - positive, minlength=bins)  # per bin, times its entries
    return float(np.abs(gap).sum() / scores.size)


def _bin(scores: np.ndarray, bins: int) -> np.ndarray:
    return np.minimum((scores.astype(np.float64) * bins).astype(np.intp), bins - 1)


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")


# --- as metrics -----------------------------------------------------------------------------------------------------


def _of_all(judged: Judged) -> float:
    return calibration(judged.scores, judged.counted).error


def _of_labels(judged: Judged) -> float:
    return mean_defined(label_calibration_error(judged.scores, judged.counted))[0]


METRICS.add(
    Metric(
        "calibration_error",
        "calibration error",
        "expected calibration error: mean gap between score and observed frequency, 15 bins",
        _of_all,
        better="lower",
        headline=True,
        order=20,
    )
)
METRICS.add(
    Metric(
        "label_calibration_error",
        "calibration error per label",
        "the same for each label on its own, averaged over labels",
        _of_labels,
        better="lower",
        headline=True,
        order=21,
    )
)

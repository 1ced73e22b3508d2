"""Precision, recall and F1 of yes/no decisions, by the convention of the multi-label papers.

CP and CR are means over labels, CF1 is the harmonic mean of the two (not the mean of the labels' F1); OP, OR and OF1
come from the counts of all labels together. A label with positives that is never predicted has precision 0. A label
without a known positive has no figures: it is left out of CP and CR, but its false positives count in OP.
Unknown entries count nowhere and take no place among an image's top k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manylabel.labels import PRESENT, known
from manylabel.metric.average_precision import mean_defined
from manylabel.metric.block import as_matrices, check_targets, row_blocks, row_slices


class F1(NamedTuple):
    """The papers' six figures (NaN when nothing is known to be present), and how many labels the means cover."""

    CP: float
    CR: float
    CF1: float
    OP: float
    OR: float
    OF1: float
    labels_scored: int


class PerLabel(NamedTuple):
    """[L] each; NaN for a label without a known positive."""

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray


class Counts(NamedTuple):
    """[L] int64 each, over known entries."""

    hits: np.ndarray  # predicted and present
    predicted: np.ndarray
    present: np.ndarray


def f1_scores(
    scores: np.ndarray, targets: np.ndarray, threshold: float | np.ndarray = 0.5, top_k: int | None = None
) -> F1:
    """Predicted where score >= threshold (one, or one per label) and, with `top_k`, among the image's k best."""
    return _summary(_count(scores, targets, threshold, top_k))


def f1_at_k(scores: np.ndarray, targets: np.ndarray, k: int) -> F1:
    """Each image's k best labels are predicted, whatever their scores; zero-shot papers report OP, OR and OF1 of it."""
    return _summary(_count(scores, targets, None, k))


def f1_of_decisions(decisions: np.ndarray, targets: np.ndarray) -> F1:
    """The same six figures for decisions already made. decisions bool [images, L]"""
    return _summary(_count_decisions(decisions, targets))


def per_label(scores: np.ndarray, targets: np.ndarray, thresholds: float | np.ndarray = 0.5) -> PerLabel:
    """Precision, recall and F1 of every label where score >= threshold (one, or one per label) is a yes."""
    return _per_label(_count(scores, targets, thresholds, None))


def per_label_of_decisions(decisions: np.ndarray, targets: np.ndarray) -> PerLabel:
    """Precision, recall and F1 of every label for decisions already made. decisions bool [images, L]"""
    return _per_label(_count_decisions(decisions, targets))


def top_k_mask(scores: np.ndarray, eligible: np.ndarray, k: int) -> np.ndarray:
    """True at the k highest eligible scores of each row (all, if fewer); of equal scores the first label wins."""
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    if k >= scores.shape[1]:
        return eligible.copy()
    ranked = np.where(eligible, scores, -np.inf)
    last = -np.partition(-ranked, k - 1, axis=1)[:, k - 1 : k]  # [rows, 1] the k-th highest
    above, tied = ranked > last, ranked == last
    places = k - above.sum(axis=1, keepdims=True)
    chosen: np.ndarray = (above | (tied & (np.cumsum(tied, axis=1) <= places))) & eligible
    return chosen


def _count(scores: np.ndarray, targets: np.ndarray, threshold: float | np.ndarray | None, top_k: int | None) -> Counts:
    scores, targets = as_matrices(scores, targets)
    cut = None if threshold is None else as_thresholds(threshold, scores.shape[1])
    counts = _no_counts(scores.shape[1])
    for _, block, states in row_blocks(scores, targets):
        chosen = np.ones(block.shape, bool) if cut is None else block >= cut
        if top_k is not None:
            chosen &= top_k_mask(block, known(states), top_k)
        _add(counts, chosen, states)
    return counts


def as_thresholds(threshold: float | np.ndarray, labels: int) -> np.ndarray:
    """One threshold per label. [L] float64, so that float32 scores are compared with the very number given"""
    cut = np.asarray(threshold, np.float64)
    if cut.shape not in ((), (labels,)) or np.isnan(cut).any():
        raise ValueError(f"threshold must be one number or one for each of {labels} labels, and not NaN")
    return np.broadcast_to(cut, labels)


def _count_decisions(decisions: np.ndarray, targets: np.ndarray) -> Counts:
    decisions, targets = np.asarray(decisions), np.asarray(targets)
    if decisions.dtype != bool or decisions.ndim != 2 or decisions.shape != targets.shape:
        raise ValueError(
            f"decisions must be bool [images, labels] like the targets {targets.shape}, "
            f"not {decisions.dtype} {decisions.shape}"
        )
    counts = _no_counts(targets.shape[1])
    for rows in row_slices(targets.shape):
        check_targets(targets[rows])
        _add(counts, decisions[rows], targets[rows])
    return counts


def _no_counts(labels: int) -> Counts:
    return Counts(*np.zeros((3, labels), np.int64))


def _add(counts: Counts, chosen: np.ndarray, states: np.ndarray) -> None:
    present = states == PRESENT
    counts.hits[:] += np.count_nonzero(chosen & present, axis=0)
    counts.predicted[:] += np.count_nonzero(chosen & known(states), axis=0)
    counts.present[:] += np.count_nonzero(present, axis=0)


def _per_label(counts: Counts) -> PerLabel:
    hits, predicted, present = counts
    shares = []
    for whole in (predicted, present, (predicted + present) / 2):
        share = hits / np.maximum(whole, 1)  # nothing predicted: 0 hits, precision 0
        shares.append(np.where(present > 0, share, np.nan))
    return PerLabel(*shares)


def _summary(counts: Counts) -> F1:
    labels = _per_label(counts)
    cp, scored = mean_defined(labels.precision)
    cr, _ = mean_defined(labels.recall)
    overall = _per_label(Counts(*(part.sum(keepdims=True) for part in counts)))
    op, recall, of1 = (float(part[0]) for part in overall)
    return F1(cp, cr, 2 * cp * cr / (cp + cr) if cp + cr else 0.0, op, recall, of1, scored)

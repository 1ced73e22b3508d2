"""From which score on an image has a label: thresholds fitted for F1, and honest decisions on the data they came from.

A decision is `score >= threshold`. Thresholds are in (0, 1], so a score of 0 is never a yes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from manylabel.labels import PRESENT, UNKNOWN, known, support
from manylabel.metric.average_precision import positive_cuts
from manylabel.metric.block import as_matrices, each_label, row_blocks, row_slices

DEFAULT = 0.5  # when there is nothing to learn from
Fit = Callable[[np.ndarray, np.ndarray], np.ndarray]  # scores [n, L] and targets [n, L] → thresholds [L]


def fit_thresholds(scores: np.ndarray, targets: np.ndarray, min_positives: int = 5) -> np.ndarray:
    """The threshold of each label with the highest F1 (of several, the highest), midway to the next lower score. [L]

    A label with fewer than `min_positives` known positives gets as many yeses as it has positives: too few to fit F1 to,
    but enough to know how often it comes. A label without a known positive or negative, or whose threshold would be 0,
    takes the one with the highest F1 over all labels' entries together; 0.5 when that has no answer either.
    """

    def fit(label_scores: np.ndarray, positive: np.ndarray) -> float:
        positives = np.count_nonzero(positive)
        if positives == 0 or positives == positive.size:
            return np.nan
        if positives < min_positives:
            cut = np.partition(label_scores, -positives)[-positives]
            return _midway(float(cut), float(label_scores[label_scores < cut].max(initial=0))) if cut > 0 else np.nan
        cuts = positive_cuts(label_scores, positive)
        cut = _best_cut(cuts.score, cuts.hits, cuts.predicted)
        return np.nan if cut is None else _midway(float(cut), float(label_scores[label_scores < cut].max(initial=0)))

    thresholds = np.array(each_label(fit, scores, targets, probabilities=True), np.float64)
    unfitted = np.isnan(thresholds)
    if unfitted.any():
        thresholds[unfitted] = _pooled_threshold(scores, targets)
    return thresholds


def cross_fitted_decisions(
    scores: np.ndarray, targets: np.ndarray, seed: int = 0, min_positives: int = 5, fit: Fit | None = None
) -> np.ndarray:
    """bool [images, L]: each half of the images decided with thresholds fitted on the other half (by `fit`, or for F1).

    Precision and recall of these decisions are honest, unlike those of thresholds judged where they were fitted.
    """
    fit = fit or partial(fit_thresholds, min_positives=min_positives)
    scores, targets = as_matrices(scores, targets)
    first = first_half(targets, seed)
    decisions = np.empty(scores.shape, bool)
    for decided in (first, ~first):
        # What is decided is unknown to the fit, so it cannot be fitted to.
        thresholds = fit(scores, np.where(decided[:, None], np.int8(UNKNOWN), targets.astype(np.int8, copy=False)))
        for rows in row_slices(scores.shape):
            decisions[rows][decided[rows]] = scores[rows][decided[rows]] >= thresholds
    return decisions


def _best_cut(score: np.ndarray, hits: np.ndarray, predicted: np.ndarray) -> np.floating | None:
    """The score (they rise) from which on a yes gives the highest F1; none if every positive scores 0."""
    above_zero = score > 0
    if not above_zero.any():
        return None
    f1 = (hits / (predicted + hits[0]))[above_zero]  # half of F1; the lowest cut hits every positive
    best: np.floating = score[above_zero][f1.size - 1 - np.argmax(f1[::-1])]
    return best


def _midway(cut: float, below: float) -> float:
    """Between the last yes and the first no; the yes itself where no number fits between."""
    middle = (cut + below) / 2
    return middle if middle > below else cut


def _pooled_threshold(scores: np.ndarray, targets: np.ndarray) -> float:
    """The threshold with the highest F1 over all known entries; holds the scores of all positives at once."""
    found = [block[states == PRESENT] for _, block, states in row_blocks(scores, targets)]
    positives = np.sort(np.concatenate([np.empty(0, np.float32), *found]))
    candidates, first = np.unique(positives, return_index=True)
    predicted = np.zeros(candidates.size, np.int64)
    for _, block, states in row_blocks(scores, targets):
        ranked = np.sort(block[known(states)])
        predicted += ranked.size - np.searchsorted(ranked, candidates)
    cut = _best_cut(candidates, positives.size - first, predicted)
    if cut is None:
        return DEFAULT
    below = (block[known(states) & (block < cut)].max(initial=0) for _, block, states in row_blocks(scores, targets))
    return _midway(float(cut), float(max(below)))


def first_half(targets: np.ndarray, seed: int) -> np.ndarray:
    """bool [images]: every second image of those with the same rarest label, so that rare labels are on both sides."""
    images, labels = targets.shape
    counts = sum((support(targets[rows]) for rows in row_slices(targets.shape)), np.zeros(labels, np.int64))
    rarest = np.full(images, labels)  # `labels` = the image has none
    for rows in row_slices(targets.shape):
        present = targets[rows] == PRESENT
        rarest[rows] = np.where(present.any(axis=1), np.where(present, counts, images + 1).argmin(axis=1), labels)
    order = np.random.default_rng(seed).permutation(images)
    order = order[np.argsort(rarest[order], kind="stable")]
    half = np.zeros(images, bool)
    half[order[::2]] = True
    return half

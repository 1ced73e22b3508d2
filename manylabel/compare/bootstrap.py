"""How sure a difference is: average precision over images drawn anew, with the same draws for every run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manylabel.labels import ABSENT, PRESENT

LEVEL = 0.95
DRAWS = 50  # at a time


def draws(images: int, count: int, seed: int = 0) -> np.ndarray:
    """How often each image is in each draw. [count, images] float32, rows add up to `images`"""
    rng = np.random.default_rng(seed)
    found = np.empty((count, images), np.float32)
    for row in found:
        row[:] = np.bincount(rng.integers(0, images, images), minlength=images)
    return found


def drawn_ap(
    scores: np.ndarray, matrix: np.ndarray, weights: np.ndarray, advance: Callable[[int], None] = lambda _: None
) -> np.ndarray:
    """AP of every label in every draw, 0..1, as if it were computed on the drawn images. [count, N]

    Not interpolated, entries with the same score cut together; NaN where a draw has no positive.
    """
    count, labels = len(weights), scores.shape[1]
    ap = np.full((count, labels), np.nan)
    for i in range(labels):
        known = np.flatnonzero((matrix[:, i] == PRESENT) | (matrix[:, i] == ABSENT))
        for start in range(0, count, DRAWS):
            block = slice(start, start + DRAWS)
            ap[block, i] = _label(scores[known, i], matrix[known, i] == PRESENT, weights[block][:, known])
        advance(1)
    return ap


def _label(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    w = weights[:, order].astype(np.float64)
    p = np.flatnonzero(positive[order])
    if not len(p):
        return np.full(len(weights), np.nan)
    last = len(ranked) - 1 - np.searchsorted(ranked[::-1], ranked[p], side="left")  # where its ties end
    predicted = np.cumsum(w, axis=1)[:, last]
    hits = np.cumsum(w * positive[order], axis=1)[:, last]
    own = w[:, p]
    total = own.sum(axis=1)
    precision = np.divide(hits, predicted, out=np.zeros_like(hits), where=predicted > 0)
    ap: np.ndarray = np.divide((own * precision).sum(axis=1), total, out=np.full(len(w), np.nan), where=total > 0)
    return ap


def interval(values: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of what the draws gave."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return np.nan, np.nan
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)

"""Spearman's rank correlation over labels, with an interval over labels drawn anew."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

FEWEST = 5  # values below which a correlation is not given
DRAWS = 2000
LEVEL = 0.95


class Correlation(NamedTuple):
    """NaN where it is not defined."""

    entries: int
    rho: float
    low: float
    high: float


def ranks(values: np.ndarray) -> np.ndarray:
    """Places from 1 on along the last axis; equal values share the mean of theirs."""
    ordered = np.sort(values, axis=-1)
    if values.ndim == 1:
        left, right = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))  # type: ignore[call-overload]
        return (left + right + 1) / 2
    return np.stack([ranks(row) for row in values])


def _rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Correlation of ranks, row by row; NaN where a row is constant."""
    x, y = ranks(a), ranks(b)
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    correlation: np.ndarray = np.divide((x * y).sum(axis=-1), scale, out=np.full(scale.shape, np.nan), where=scale > 0)
    return correlation


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Of the entries where both are known; NaN with fewer than five of them, or where one never changes."""
    both = ~np.isnan(a) & ~np.isnan(b)
    if both.sum() < FEWEST:
        return math.nan
    return float(_rows(a[both][None], b[both][None])[0])


def spearman_interval(a: np.ndarray, b: np.ndarray, draws: int = DRAWS, seed: int = 0) -> Correlation:
    """The same with the middle 95 % over entries drawn anew."""
    both = ~np.isnan(a) & ~np.isnan(b)
    count, rho = int(both.sum()), spearman(a, b)
    if math.isnan(rho):
        return Correlation(count, math.nan, math.nan, math.nan)
    drawn = np.random.default_rng(seed).integers(0, count, (draws, count))
    return Correlation(count, rho, *_middle(_rows(a[both][drawn], b[both][drawn])))


def mean_within(group: np.ndarray, a: np.ndarray, b: np.ndarray, draws: int = DRAWS, seed: int = 0) -> Correlation:
    """Mean of the correlations inside each group (a label), with an interval over groups drawn anew."""
    found = np.array([spearman(a[group == g], b[group == g]) for g in np.unique(group)])
    found = found[~np.isnan(found)]
    if len(found) < FEWEST:
        return Correlation(len(found), math.nan, math.nan, math.nan)
    drawn = found[np.random.default_rng(seed).integers(0, len(found), (draws, len(found)))].mean(axis=1)
    return Correlation(len(found), float(found.mean()), *_middle(drawn))


def _middle(values: np.ndarray) -> tuple[float, float]:
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)

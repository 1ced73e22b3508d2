"""From logits to scores, and from scores to labels, in NumPy. Training and evaluation use torch's activation, whose last
bit may differ from NumPy's: their figures stay what they were."""

from __future__ import annotations

from typing import Literal

import numpy as np

Activation = Literal["sigmoid", "softmax"]


def scores_of(logits: np.ndarray, activation: Activation) -> np.ndarray:
    """[B, N] float32"""
    x = logits.astype(np.float32, copy=False)
    if activation == "softmax":
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        shares: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
        return shares
    small = np.exp(-np.abs(x))  # never overflows
    scores: np.ndarray = np.where(x >= 0, np.float32(1), small) / (1 + small)
    return scores


def decide(scores: np.ndarray, thresholds: np.ndarray, single: bool = False) -> np.ndarray:
    """Which labels are said to be there: those that reach their threshold, or the one with the highest score. [B, N] bool"""
    said: np.ndarray = scores >= thresholds
    if single:
        said = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]
    return said

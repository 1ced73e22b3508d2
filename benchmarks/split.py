"""Stratified splits: ours against the iterative-stratification package, in time and in how well the labels are spread.

Both split the same matrices into 80 % and 20 %. Quality is the mean over labels of |share of the label's images that
is held out − 0.2|, for labels with two images at least; and how many of these are missing from one side.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.table import Row, less_is_better
from manylabel.data.stratify import stratified_folds
from manylabel.error import ConfigError
from manylabel.labels import PRESENT

SHARE = 0.2
PEER = "iterative-stratification"
CASES = {"10,000 × 80": (10_000, 80, 0), "100,000 × 1,000, 50 labels of 2–5": (100_000, 1000, 50)}


def run(quick: bool = False) -> list[Row]:
    """Time, deviation and missing labels for each size."""
    rows = []
    for case, size in list(CASES.items())[: 1 if quick else None]:
        rows += _measure(case, long_tailed(*size))
    return rows


def long_tailed(images: int, labels: int, rare: int, seed: int = 0) -> np.ndarray:
    """Label frequencies that fall from a third like 1/rank, and at the end `rare` labels of two to five images."""
    rng = np.random.default_rng(seed)
    chance = np.maximum(0.33 / np.arange(1, labels + 1), 3 / images)
    matrix = np.empty((images, labels), np.int8)
    for start in range(0, images, 10_000):
        part = matrix[start : start + 10_000]
        part[:] = rng.random(part.shape, np.float32) < chance
    for label in range(labels - rare, labels):
        matrix[:, label] = 0
        matrix[rng.choice(images, rng.integers(2, 6), replace=False), label] = PRESENT
    return matrix


def _measure(case: str, matrix: np.ndarray) -> list[Row]:
    ours, our_time = _timed(lambda: stratified_folds(matrix, (1 - SHARE, SHARE)) == 1)
    peer, peer_time = _timed(lambda: _peer(matrix))
    ours_off, ours_missing = _quality(matrix, ours)
    peer_off, peer_missing = _quality(matrix, peer)
    ratio = (1 + peer_missing) / (1 + ours_missing)
    return [
        less_is_better("time of a split", case, our_time, peer_time, "s", PEER),
        less_is_better("mean deviation from 20 %", case, 100 * ours_off, 100 * peer_off, "% of a label", PEER),
        Row("labels missing from a side", case, ours_missing, peer_missing, ratio, "labels", PEER),
    ]


def _timed(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def _peer(matrix: np.ndarray) -> np.ndarray:
    try:
        from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit
    except ImportError as error:
        raise ConfigError(f'{PEER} is not installed: pip install "manylabel[bench]"') from error
    splitter = MultilabelStratifiedShuffleSplit(n_splits=1, test_size=SHARE, random_state=0)
    held = np.zeros(len(matrix), bool)
    held[next(splitter.split(np.zeros(len(matrix)), matrix == PRESENT))[1]] = True
    return held


def _quality(matrix: np.ndarray, held: np.ndarray) -> tuple[float, int]:
    total = (matrix == PRESENT).sum(axis=0)
    out = (matrix[held] == PRESENT).sum(axis=0)
    enough = total >= 2
    missing = int((enough & ((out == 0) | (out == total))).sum())
    return float(np.abs(out / np.maximum(total, 1) - SHARE)[enough].mean()), missing

"""Scores and targets, checked and read block by block, so that a metric's memory does not grow with the matrix.

`scores` are floats [images, labels]; `targets` are PRESENT, ABSENT or UNKNOWN, of the same shape.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from manylabel.labels import PRESENT, UNKNOWN, known

T = TypeVar("T")

BLOCK = 1 << 20  # entries read at once: 4 MB of float32 scores, which still fits a processor's cache
TILE = 256  # rows turned at once: longer strides miss the cache at every entry (measured: 7 times slower)
WORKERS = min(os.cpu_count() or 1, 8)  # numpy sorts without the GIL; each worker holds one block


def as_matrices(scores: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of one shape [images, labels]; their values are checked block by block as they are read."""
    scores, targets = np.asarray(scores), np.asarray(targets)
    if scores.ndim != 2 or scores.shape != targets.shape:
        raise ValueError(f"scores and targets must both be [images, labels], not {scores.shape} and {targets.shape}")
    if scores.dtype.kind != "f" or scores.dtype.itemsize > 8:
        raise ValueError(f"scores must be float16, float32 or float64, not {scores.dtype}")
    if targets.dtype.kind not in "iub":
        raise ValueError(f"targets must be whole numbers (1, 0, -1), not {targets.dtype}")
    return scores, targets


def row_slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of images with about BLOCK entries each."""
    step = max(1, BLOCK // max(1, shape[1]))
    return (slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step))


def row_blocks(
    scores: np.ndarray, targets: np.ndarray, probabilities: bool = False
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """(rows, scores [rows, L], targets [rows, L]) over all images; with `probabilities`, scores must be in 0..1."""
    scores, targets = as_matrices(scores, targets)
    for rows in row_slices(scores.shape):
        block, labels = scores[rows].astype(_working(scores.dtype), copy=False), targets[rows]
        check_values(block, labels, 0, probabilities)
        yield rows, block, labels


def each_label(
    measure: Callable[[np.ndarray, np.ndarray], T], scores: np.ndarray, targets: np.ndarray, probabilities: bool = False
) -> list[T]:
    """`measure(scores [m], positive [m])` of every label, over its m known entries; it must not write to them."""
    scores, targets = as_matrices(scores, targets)
    images, labels = scores.shape
    # A few labels on several processors: smaller blocks, so that every worker has some.
    step = max(1, min(BLOCK // max(1, images), -(-labels // WORKERS)))

    def measure_block(first: int) -> list[T]:
        columns = slice(first, first + step)
        block = _turned(scores[:, columns], _working(scores.dtype))  # [labels, images]
        states = _turned(targets[:, columns], targets.dtype)
        check_values(block.T, states.T, first, probabilities)
        if not (states == UNKNOWN).any():
            return [measure(column, state == PRESENT) for column, state in zip(block, states, strict=True)]
        return [
            measure(column[given], state[given] == PRESENT)
            for column, state, given in zip(block, states, known(states), strict=True)
        ]

    with ThreadPoolExecutor(WORKERS) as pool:
        return [value for values in pool.map(measure_block, range(0, labels, step)) for value in values]


def check_values(scores: np.ndarray, targets: np.ndarray, first_label: int, probabilities: bool) -> None:
    """Error that names the first label column (counted from `first_label`) with an unusable score or target."""
    if not (usable := np.isfinite(scores)).all():
        raise ValueError(f"scores of label column {first_label + _bad_column(usable)} hold NaN or infinity")
    if probabilities and scores.size and (scores.min() < 0 or scores.max() > 1):
        bad = _bad_column((scores >= 0) & (scores <= 1))
        raise ValueError(f"scores of label column {first_label + bad} are not probabilities between 0 and 1")
    check_targets(targets, first_label)


def check_targets(targets: np.ndarray, first_label: int = 0) -> None:
    if targets.size and targets.dtype.kind != "b" and (targets.min() < UNKNOWN or targets.max() > PRESENT):
        bad = _bad_column((targets >= UNKNOWN) & (targets <= PRESENT))
        raise ValueError(f"targets of label column {first_label + bad} are not all 1, 0 or -1")


def _bad_column(usable: np.ndarray) -> int:
    return int(np.flatnonzero(~usable.all(axis=0))[0])


def _working(dtype: np.dtype) -> type[np.floating]:
    """numpy sorts float16 slowly; float32 holds every float16 exactly."""
    return np.float32 if dtype.itemsize <= 4 else np.float64


def _turned(columns: np.ndarray, dtype: np.dtype | type[np.floating]) -> np.ndarray:
    """[images, labels] as a contiguous copy [labels, images]."""
    turned = np.empty(columns.shape[::-1], dtype)
    for start in range(0, len(columns), TILE):
        turned[:, start : start + TILE] = columns[start : start + TILE].T
    return turned

"""Average precision of ours against torchmetrics and scikit-learn: same figures (asserted), time and memory."""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.table import Row, interleave, less_is_better
from manylabel.error import ManylabelError
from manylabel.metric import average_precision

COCO = (40_137, 80)  # images × labels of the COCO-14 validation set, as the papers count it
OPEN_IMAGES_LABELS = 9_605
PEER_LABELS = 960  # of those 9,605: the peer takes minutes for all, at least in proportion to their number


def run(quick: bool = False) -> list[Row]:
    """Every comparison; `quick` takes small inputs, to show that it works."""
    images, labels = (2_000, 20) if quick else COCO
    scores, targets = make_case(images, labels, share=0.036)  # COCO: 2.9 labels per image
    rows = [_against_torchmetrics(scores, targets, repeats=5), _against_sklearn(scores, targets, repeats=3)]
    images, labels = (1_000, 500) if quick else (20_000, OPEN_IMAGES_LABELS)
    scores, targets = make_case(images, labels, share=0.002)
    rows += [_against_torchmetrics(scores, targets, repeats=1), _peak_memory(scores, targets)]
    return rows


def make_case(images: int, labels: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores float32 and targets int8 of a model that is mostly right; every label has a positive."""
    random = np.random.default_rng(seed)
    scores, targets = np.empty((images, labels), np.float32), np.empty((images, labels), np.int8)
    for start in range(0, images, 500):  # in pieces: the case itself should be the largest thing in memory
        rows = slice(start, start + 500)
        present = random.random(scores[rows].shape, np.float32) < share
        logits = random.standard_normal(scores[rows].shape, np.float32) * 1.5 - 3 + 4 * present
        scores[rows], targets[rows] = 1 / (1 + np.exp(-logits)), present
    targets[np.arange(labels) % images, np.arange(labels)] = 1
    return scores, targets


def _against_torchmetrics(scores: np.ndarray, targets: np.ndarray, repeats: int) -> Row:
    torch, functional = _peer("torch"), _peer("torchmetrics.functional.classification")
    images, labels = scores.shape
    timed = min(labels, PEER_LABELS)
    tensors = torch.from_numpy(scores[:, :timed].copy()), torch.from_numpy(targets[:, :timed].astype(np.int64))

    def theirs() -> Any:
        return functional.multilabel_average_precision(*tensors, timed, average="none", thresholds=None)

    case = f"{images:,} × {labels:,} float32"
    if timed < labels:
        case += f"; the peer is timed on {timed} labels and multiplied by {labels / timed:.2f}"
    ours, peer = interleave(lambda: average_precision(scores, targets), theirs, repeats)
    # Theirs is computed in float32.
    _assert_equal(average_precision(scores, targets)[:timed], theirs().numpy(), 1e-5)
    return less_is_better("average precision", case, ours, peer * labels / timed, "s", "torchmetrics, exact")


def _against_sklearn(scores: np.ndarray, targets: np.ndarray, repeats: int) -> Row:
    average_precision_score = _peer("sklearn.metrics").average_precision_score

    def theirs() -> np.ndarray:
        return np.array([average_precision_score(targets[:, i], scores[:, i]) for i in range(scores.shape[1])])

    ours, peer = interleave(lambda: average_precision(scores, targets), theirs, repeats)
    _assert_equal(average_precision(scores, targets), theirs(), 1e-9)
    case = f"{scores.shape[0]:,} × {scores.shape[1]:,} float32"
    return less_is_better("average precision", case, ours, peer, "s", "scikit-learn, a loop over labels")


def _peak_memory(scores: np.ndarray, targets: np.ndarray) -> Row:
    peak = peak_bytes(lambda: average_precision(scores, targets))
    case = f"{scores.shape[0]:,} × {scores.shape[1]:,} float32, beyond the inputs"
    megabytes = peak / 1e6, (scores.nbytes + targets.nbytes) / 1e6
    return less_is_better("average precision, peak memory", case, *megabytes, "MB", "the inputs themselves")


def peak_bytes(function: Callable[[], object]) -> int:
    """The most that numpy and Python held at once during the call, beyond what they held before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _assert_equal(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    gap = float(np.abs(ours - theirs).max())
    if not gap <= tolerance:
        raise AssertionError(f"the results differ by {gap:.2g}, so their speed must not be compared")


def _peer(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ManylabelError(
            f'this benchmark compares with {module.partition(".")[0]}: pip install "manylabel[bench]"'
        ) from error

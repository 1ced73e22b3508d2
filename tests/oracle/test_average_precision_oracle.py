"""Average precision against its definition written as loops, scikit-learn and torchmetrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score

from manylabel.metric import average_precision, average_precisions, mean_average_precision


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Tied scores, every float type, labels that are all positive, all negative, partly or wholly unknown."""
    shape = draw(st.tuples(st.integers(1, 25), st.integers(1, 4)))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    steps = draw(st.sampled_from([1, 4, 1000]))
    scores = (draw(hnp.arrays(np.int64, shape, elements=st.integers(0, steps))) / steps).astype(dtype)
    targets = np.empty(shape, np.int8)
    for label in range(shape[1]):
        states = draw(st.sampled_from([[0, 1], [0, 1, -1], [1], [0], [1, -1], [0, -1], [-1]]))
        targets[:, label] = draw(hnp.arrays(np.int8, shape[0], elements=st.sampled_from(states)))
    return scores, targets


def literal_curve(scores: list[float], targets: list[int]) -> list[tuple[float, float]]:
    """(recall, precision) at every distinct score, from the highest down: counted afresh each time."""
    entries = [(score, target) for score, target in zip(scores, targets, strict=True) if target != -1]
    positives = sum(target for _, target in entries)
    points = []
    for threshold in sorted({score for score, _ in entries}, reverse=True):
        chosen = [target for score, target in entries if score >= threshold]
        points.append((sum(chosen) / positives if positives else math.nan, sum(chosen) / len(chosen)))
    return points


def literal_ap(scores: list[float], targets: list[int], voc: bool) -> float:
    """Area under the steps of the curve; VOC raises each step to the best precision at its recall or beyond."""
    if 1 not in targets:
        return math.nan
    points = literal_curve(scores, targets)
    area, last_recall = 0.0, 0.0
    for recall, precision in points:
        height = max(p for r, p in points if r >= recall) if voc else precision
        area += (recall - last_recall) * height
        last_recall = recall
    return area


@given(cases())
@settings(max_examples=1000, deadline=None)
def test_equals_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = case
    ours = average_precision(scores, targets)
    for label in range(scores.shape[1]):
        given_entries = targets[:, label] != -1
        known_targets = targets[given_entries, label]
        if not (known_targets == 1).any():
            assert math.isnan(ours[label])
        else:
            assert abs(ours[label] - average_precision_score(known_targets, scores[given_entries, label])) <= 1e-12


@given(cases())
@settings(max_examples=300, deadline=None)
def test_equals_the_definition(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = case
    both = average_precisions(scores, targets)
    for kind in ("none", "voc"):
        expected = [
            literal_ap(s.tolist(), t.tolist(), voc=kind == "voc") for s, t in zip(scores.T, targets.T, strict=True)
        ]
        np.testing.assert_allclose(both[kind], expected, rtol=0, atol=1e-12)
        defined = [value for value in expected if not math.isnan(value)]
        mean, scored = mean_average_precision(scores, targets, kind)
        assert scored == len(defined)
        assert math.isnan(mean) if not defined else abs(mean - sum(defined) / len(defined)) <= 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_scikit_learn_on_a_large_matrix(dtype: type[np.floating]) -> None:
    """Several blocks of columns and tiles of rows, some entries unknown, many scores tied."""
    random = np.random.default_rng(0)
    scores = random.random((3000, 401)).astype(dtype)
    scores[:, ::2] = scores[:, ::2].round(2)
    targets = random.choice(np.array([0, 1, -1], np.int8), scores.shape, p=[0.8, 0.1, 0.1])
    targets[:, 200:] = np.maximum(targets[:, 200:], 0)
    ours = average_precision(scores, targets)
    for label in range(0, scores.shape[1], 7):
        known = targets[:, label] != -1
        assert abs(ours[label] - average_precision_score(targets[known, label], scores[known, label])) <= 1e-12


def test_equals_torchmetrics() -> None:
    torch = pytest.importorskip("torch")
    classification = pytest.importorskip("torchmetrics.functional.classification")
    random = np.random.default_rng(1)
    scores = random.random((500, 12), np.float32).round(2)  # tied scores
    targets = random.integers(0, 2, scores.shape).astype(np.int8)
    theirs = classification.multilabel_average_precision(
        torch.from_numpy(scores), torch.from_numpy(targets).long(), 12, average="none", thresholds=None
    )
    np.testing.assert_allclose(average_precision(scores, targets), theirs.numpy(), rtol=0, atol=1e-6)

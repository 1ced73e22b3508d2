from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from benchmarks.metrics import make_case, peak_bytes
from manylabel.metric import calibration, label_calibration_error


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 20), st.integers(1, 4)))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    scores = draw(hnp.arrays(np.float64, shape, elements=st.floats(0, 1) | st.sampled_from([0.0, 0.2, 0.5, 1.0])))
    states = draw(st.sampled_from([[0, 1], [0, 1, -1], [0, -1], [-1]]))
    return scores.astype(dtype), draw(hnp.arrays(np.int8, shape, elements=st.sampled_from(states)))


def literal_bins(scores: np.ndarray, targets: np.ndarray, bins: int) -> list[list[tuple[float, int]]]:
    contents: list[list[tuple[float, int]]] = [[] for _ in range(bins)]
    for score, target in zip(scores.ravel().tolist(), targets.ravel().tolist(), strict=True):
        if target != -1:
            contents[min(int(score * bins), bins - 1)].append((score, target))
    return contents


def literal_error(contents: list[list[tuple[float, int]]]) -> float:
    total = sum(len(entries) for entries in contents)
    error = 0.0
    for entries in contents:
        if entries:
            mean_score = sum(score for score, _ in entries) / len(entries)
            frequency = sum(target for _, target in entries) / len(entries)
            error += len(entries) / total * abs(mean_score - frequency)
    return error if total else math.nan


@given(cases(), st.sampled_from([1, 5, 15]))
@settings(max_examples=300, deadline=None)
def test_equals_the_definition(case: tuple[np.ndarray, np.ndarray], bins: int) -> None:
    scores, targets = case
    contents = literal_bins(scores, targets, bins)
    result = calibration(scores, targets, bins)
    np.testing.assert_allclose(result.error, literal_error(contents), atol=1e-12)
    assert result.count.tolist() == [len(entries) for entries in contents]
    for column, part in ((0, result.mean_score), (1, result.frequency)):
        means = [float(np.mean([entry[column] for entry in entries])) if entries else np.nan for entries in contents]
        np.testing.assert_allclose(part, means, atol=1e-12)


@given(cases())
@settings(max_examples=300, deadline=None)
def test_label_error_equals_the_definition(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = case
    expected = [
        literal_error(literal_bins(scores[:, i], targets[:, i], 15)) if 1 in targets[:, i] else math.nan
        for i in range(scores.shape[1])
    ]
    np.testing.assert_allclose(
        label_calibration_error(scores, targets), expected, rtol=1e-6, atol=1e-8
    )  # of float32 scores


def test_honest_scores_have_a_small_error_and_overconfident_ones_a_large_one() -> None:
    random = np.random.default_rng(0)
    scores = random.random((20_000, 3))
    targets = (random.random(scores.shape) < scores).astype(np.int8)
    assert calibration(scores, targets).error < 0.01
    assert label_calibration_error(scores, targets).max() < 0.02
    assert calibration((scores > 0.5).astype(np.float64), targets).error == pytest.approx(0.25, abs=0.01)


def test_many_rows_are_binned_over_several_blocks() -> None:
    scores, targets = make_case(2_500, 1_000, share=0.1)
    result = calibration(scores, targets, bins=10)
    assert result.count.sum() == scores.size
    assert result.error == pytest.approx(literal_error(literal_bins(scores, targets, 10)), abs=1e-9)
    assert peak_bytes(lambda: calibration(scores, targets)) < 60e6
    assert peak_bytes(lambda: label_calibration_error(scores, targets)) < 100e6


def test_nothing_known_is_nan() -> None:
    result = calibration(np.zeros((2, 2)), np.full((2, 2), -1, np.int8))
    assert math.isnan(result.error)
    assert result.count.sum() == 0


@pytest.mark.parametrize("function", [calibration, label_calibration_error])
def test_scores_must_be_probabilities(function: object) -> None:
    targets = np.zeros((1, 3), np.int8)
    with pytest.raises(ValueError, match="label column 1 are not probabilities"):
        function(np.array([[0.5, 1.5, 0.2]]), targets)  # type: ignore[operator]
    with pytest.raises(ValueError, match="label column 2 "):
        function(np.array([[0.5, 0.5, np.nan]]), targets)  # type: ignore[operator]
    with pytest.raises(ValueError, match="bins"):
        function(np.zeros((1, 3)), targets, bins=0)  # type: ignore[operator]

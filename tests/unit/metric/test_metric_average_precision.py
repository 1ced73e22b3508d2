from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve as sklearn_curve

from benchmarks.metrics import make_case, peak_bytes
from manylabel.metric import (
    average_precision,
    average_precisions,
    block,
    mean_average_precision,
    mean_defined,
    precision_recall_curve,
)


def column(*values: float, dtype: type = np.float64) -> np.ndarray:
    return np.array(values, dtype)[:, None]


def test_by_hand() -> None:
    """Ranked yes, no, yes, yes: precision 1, 2/3, 3/4 at the positives; VOC lifts the second to 3/4."""
    both = average_precisions(column(0.9, 0.8, 0.7, 0.6), column(1, 0, 1, 1, dtype=np.int8))
    assert both["none"][0] == pytest.approx((1 + 2 / 3 + 3 / 4) / 3, abs=1e-15)
    assert both["voc"][0] == pytest.approx((1 + 3 / 4 + 3 / 4) / 3, abs=1e-15)


def test_all_positive_is_one_and_no_positive_is_undefined() -> None:
    scores = np.array([[0.1, 0.2, 0.3], [0.1, 0.9, 0.4]])
    targets = np.array([[1, 0, -1], [1, 0, 0]], np.int8)
    ap = average_precision(scores, targets)
    assert ap[0] == 1.0
    assert np.isnan(ap[1:]).all()
    assert mean_average_precision(scores, targets) == (1.0, 1)


def test_nothing_scored_is_nan() -> None:
    mean, scored = mean_average_precision(np.zeros((3, 2)), np.zeros((3, 2), np.int8))
    assert np.isnan(mean)
    assert scored == 0
    assert np.isnan(average_precision(np.zeros((0, 2)), np.zeros((0, 2), np.int8))).all()
    assert average_precision(np.zeros((3, 0)), np.zeros((3, 0), np.int8)).shape == (0,)


def test_unknown_entries_change_nothing() -> None:
    random = np.random.default_rng(0)
    scores, targets = random.random((60, 3)), random.integers(0, 2, (60, 3)).astype(np.int8)
    more_scores = np.concatenate([scores, random.random((40, 3))])
    more_targets = np.concatenate([targets, np.full((40, 3), -1, np.int8)])
    assert np.array_equal(average_precision(more_scores, more_targets), average_precision(scores, targets))


def test_negative_zero_ties_with_zero() -> None:
    assert average_precision(column(-0.0, 0.0), column(1, 0, dtype=np.int8))[0] == 0.5
    assert average_precision(column(0.0, -0.0), column(1, 0, dtype=np.int8))[0] == 0.5


def test_float64_scores_that_are_equal_in_float32_are_not_tied() -> None:
    assert average_precision(column(0.5 + 1e-12, 0.5), column(1, 0, dtype=np.int8))[0] == 1.0


def test_logits_may_be_ranked_too() -> None:
    assert average_precision(column(-3.0, -5.0, 7.0), column(1, 0, 1, dtype=np.int8))[0] == 1.0


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_does_not_matter_and_inputs_are_not_written_to(order: str) -> None:
    random = np.random.default_rng(0)
    scores, targets = random.random((300, 5), np.float32), random.integers(-1, 2, (300, 5)).astype(np.int8)
    expected = average_precision(scores.copy(), targets.copy())
    ordered_scores, ordered_targets = np.array(scores, order=order), np.array(targets, order=order)  # type: ignore[call-overload]
    assert np.array_equal(average_precision(ordered_scores, ordered_targets), expected)
    assert np.array_equal(ordered_scores, scores)
    assert np.array_equal(ordered_targets, targets)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_name_their_label(value: float) -> None:
    scores = np.zeros((400, 7000), np.float32)  # more than one block of labels
    scores[3, 6543] = value
    with pytest.raises(ValueError, match="label column 6543 "):
        average_precision(scores, np.zeros(scores.shape, np.int8))


@pytest.mark.parametrize(
    ("scores", "targets", "message"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2), np.int8), r"\(2, 3\) and \(3, 2\)"),
        (np.zeros(3), np.zeros(3, np.int8), r"\[images, labels\]"),
        (np.zeros((2, 3), np.int64), np.zeros((2, 3), np.int8), "float"),
        (np.zeros((2, 3)), np.zeros((2, 3)), "whole numbers"),
        (np.zeros((2, 3)), np.array([[0, 0, 0], [0, 2, 0]], np.int8), "label column 1 "),
        (np.zeros((2, 3)), np.array([[0, 0, -2], [0, 1, 0]], np.int8), "label column 2 "),
    ],
)
def test_inputs_that_cannot_be_meant(scores: np.ndarray, targets: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        average_precision(scores, targets)


def test_interpolation_must_be_known() -> None:
    with pytest.raises(ValueError, match="11-point"):
        average_precision(np.zeros((1, 1)), np.ones((1, 1), np.int8), "11-point")  # type: ignore[arg-type]


def test_curve_is_scikit_learns_without_its_added_end() -> None:
    random = np.random.default_rng(2)
    scores, targets = random.random(200).round(2), random.integers(-1, 2, 200).astype(np.int8)
    precision, recall, threshold = precision_recall_curve(scores, targets)
    known = targets != -1
    expected = sklearn_curve(targets[known], scores[known])
    np.testing.assert_allclose(precision[::-1], expected[0][:-1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(recall[::-1], expected[1][:-1], rtol=0, atol=1e-15)
    assert np.array_equal(threshold[::-1], expected[2])


def test_curve_without_positives_and_without_entries() -> None:
    precision, recall, threshold = precision_recall_curve(np.array([0.2, 0.8]), np.array([0, 0], np.int8))
    assert precision.tolist() == [0, 0]
    assert np.isnan(recall).all()
    assert threshold.tolist() == [0.8, 0.2]
    assert [part.size for part in precision_recall_curve(np.array([0.5]), np.array([-1], np.int8))] == [0, 0, 0]


def test_curve_takes_one_label() -> None:
    with pytest.raises(ValueError, match="one label"):
        precision_recall_curve(np.zeros((2, 2)), np.zeros((2, 2), np.int8))
    with pytest.raises(ValueError, match="must both be"):
        precision_recall_curve(np.zeros(2), np.zeros(3, np.int8))
    with pytest.raises(ValueError, match="NaN"):
        precision_recall_curve(np.array([np.nan]), np.array([1], np.int8))


def test_mean_defined() -> None:
    assert mean_defined(np.array([0.25, np.nan, 0.75])) == (0.5, 2)


def test_memory_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A float64 copy of these scores alone would take 80 MB."""
    monkeypatch.setattr(block, "WORKERS", 2)  # each holds a block
    scores, targets = make_case(1_000, 10_000, share=0.002)
    assert peak_bytes(lambda: average_precision(scores, targets)) < 25e6


@pytest.mark.slow
def test_open_images_fits_in_bounded_memory() -> None:
    scores, targets = make_case(20_000, 9_605, share=0.002)
    assert peak_bytes(lambda: average_precision(scores, targets)) < 200e6


def test_metrics_do_not_need_torch() -> None:
    command = "import sys, manylabel.metric; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], timeout=60).returncode == 0

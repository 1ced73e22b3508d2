from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import precision_recall_fscore_support

from benchmarks.metrics import peak_bytes
from manylabel.metric import F1, f1_at_k, f1_of_decisions, f1_scores, per_label, per_label_of_decisions


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 6)))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    scores = (draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 8))) / 8).astype(dtype)
    states = draw(st.sampled_from([[0, 1], [0, 1, -1], [0, -1], [0, 0, 0, 1]]))
    return scores, draw(hnp.arrays(np.int8, shape, elements=st.sampled_from(states)))


def literal_decisions(scores: np.ndarray, targets: np.ndarray, thresholds: list[float], k: int | None) -> np.ndarray:
    decisions = np.zeros(scores.shape, bool)
    for image in range(scores.shape[0]):
        known = [label for label in range(scores.shape[1]) if targets[image, label] != -1]
        best = sorted(known, key=lambda label: (-float(scores[image, label]), label))[:k]
        for label in best:
            decisions[image, label] = float(scores[image, label]) >= thresholds[label]
    return decisions


def literal_label(decisions: np.ndarray, targets: np.ndarray, label: int) -> tuple[int, int, int]:
    hits = wrong = missed = 0
    for decision, target in zip(decisions[:, label], targets[:, label], strict=True):
        hits += bool(decision) and target == 1
        wrong += bool(decision) and target == 0
        missed += not decision and target == 1
    return hits, wrong, missed


def literal_f1(decisions: np.ndarray, targets: np.ndarray) -> F1:
    """The formulas of the papers, label by label."""
    precisions, recalls = [], []
    all_hits = all_wrong = all_missed = 0
    for label in range(targets.shape[1]):
        hits, wrong, missed = literal_label(decisions, targets, label)
        all_hits, all_wrong, all_missed = all_hits + hits, all_wrong + wrong, all_missed + missed
        if hits + missed > 0:
            precisions.append(hits / (hits + wrong) if hits + wrong else 0.0)
            recalls.append(hits / (hits + missed))
    if not precisions:
        return F1(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    cp, cr = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    op = all_hits / (all_hits + all_wrong) if all_hits + all_wrong else 0.0
    overall_recall = all_hits / (all_hits + all_missed)
    cf1, of1 = (2 * p * r / (p + r) if p + r else 0.0 for p, r in ((cp, cr), (op, overall_recall)))
    return F1(cp, cr, cf1, op, overall_recall, of1, len(precisions))


@given(cases(), st.sampled_from([0.5, 0.125, 0.3, 1.0]))
@settings(max_examples=300, deadline=None)
def test_equals_the_definition(case: tuple[np.ndarray, np.ndarray], threshold: float) -> None:
    scores, targets = case
    decisions = literal_decisions(scores, targets, [threshold] * scores.shape[1], None)
    np.testing.assert_allclose(f1_scores(scores, targets, threshold), literal_f1(decisions, targets), atol=1e-12)
    np.testing.assert_allclose(f1_of_decisions(decisions, targets), literal_f1(decisions, targets), atol=1e-12)


@given(cases(), st.integers(1, 7))
@settings(max_examples=300, deadline=None)
def test_top_k_equals_the_definition(case: tuple[np.ndarray, np.ndarray], k: int) -> None:
    scores, targets = case
    labels = scores.shape[1]
    both = literal_f1(literal_decisions(scores, targets, [0.5] * labels, k), targets)
    np.testing.assert_allclose(f1_scores(scores, targets, top_k=k), both, atol=1e-12)
    exactly_k = literal_f1(literal_decisions(scores, targets, [-math.inf] * labels, k), targets)
    np.testing.assert_allclose(f1_at_k(scores, targets, k), exactly_k, atol=1e-12)


@given(cases(), st.data())
@settings(max_examples=300, deadline=None)
def test_per_label_equals_scikit_learn(case: tuple[np.ndarray, np.ndarray], data: st.DataObject) -> None:
    scores, targets = case
    labels = scores.shape[1]
    thresholds = np.array(data.draw(st.lists(st.integers(0, 8), min_size=labels, max_size=labels))) / 8
    ours = per_label(scores, targets, thresholds)
    decided = per_label_of_decisions(scores >= thresholds, targets)
    for label in range(labels):
        known = targets[:, label] != -1
        truth, score = targets[known, label], scores[known, label]
        figures = [part[label] for part in ours]
        np.testing.assert_array_equal(figures, [part[label] for part in decided])
        if not truth.any():
            assert np.isnan(figures).all()
        else:
            theirs = precision_recall_fscore_support(
                truth, score >= thresholds[label], average="binary", zero_division=0
            )
            np.testing.assert_allclose(figures, theirs[:3], rtol=0, atol=1e-12)


def test_cf1_is_the_harmonic_mean_of_means_not_the_mean_of_f1() -> None:
    scores = np.array([[0.9, 0.9], [0.1, 0.9], [0.1, 0.9]])
    targets = np.array([[1, 1], [1, 0], [1, 0]], np.int8)
    result = f1_scores(scores, targets)
    np.testing.assert_allclose(result[:3], [(1 + 1 / 3) / 2, (1 / 3 + 1) / 2, 2 / 3])
    assert np.mean(per_label(scores, targets).f1) == pytest.approx(1 / 2)
    np.testing.assert_allclose(result[3:6], [1 / 2, 1 / 2, 1 / 2])


def test_false_positives_of_a_label_without_positives_count_in_op_only() -> None:
    result = f1_scores(np.array([[0.9, 0.9]]), np.array([[1, 0]], np.int8))
    np.testing.assert_allclose(result, F1(CP=1, CR=1, CF1=1, OP=0.5, OR=1, OF1=2 / 3, labels_scored=1))


def test_never_predicted_label_has_precision_zero() -> None:
    result = f1_scores(np.array([[0.9, 0.1]]), np.array([[1, 1]], np.int8))
    assert (result.CP, result.OP, result.labels_scored) == (0.5, 1.0, 2)
    assert f1_scores(np.array([[0.1]]), np.array([[1]], np.int8)) == F1(0, 0, 0, 0, 0, 0, 1)


def test_unknown_takes_no_place_in_the_top_k() -> None:
    scores, targets = np.array([[0.9, 0.8, 0.7]]), np.array([[-1, 0, 1]], np.int8)
    assert f1_at_k(scores, targets, 2).OR == 1.0
    assert f1_at_k(scores, np.array([[0, 0, 1]], np.int8), 2).OR == 0.0


def test_of_equal_scores_the_first_label_is_in_the_top_k() -> None:
    scores = np.full((1, 5), 0.5)
    recalls = [f1_at_k(scores, np.eye(5, dtype=np.int8)[[label]], 2).OR for label in range(5)]
    assert recalls == [1, 1, 0, 0, 0]


def test_float32_score_is_compared_with_the_very_threshold_given() -> None:
    """float32(0.7) is a little less than 0.7; one number and a list of numbers must decide alike."""
    scores, targets = np.array([[0.7]], np.float32), np.array([[1]], np.int8)
    assert f1_scores(scores, targets, 0.7).OR == f1_scores(scores, targets, np.array([0.7])).OR == 0.0


def test_many_rows_are_counted_over_several_blocks() -> None:
    random = np.random.default_rng(0)
    scores, targets = random.random((7000, 400), np.float32), random.integers(-1, 2, (7000, 400)).astype(np.int8)
    chosen, known = scores >= 0.5, targets != -1
    hits = np.sum(chosen & (targets == 1))
    precision_recall = [hits / np.sum(chosen & known), hits / np.sum(targets == 1)]
    np.testing.assert_allclose(f1_scores(scores, targets)[3:5], precision_recall, rtol=1e-15)
    assert peak_bytes(lambda: f1_scores(scores, targets, top_k=3)) < 60e6


@pytest.mark.parametrize("threshold", [np.array([0.5, 0.5]), np.nan, np.full((1, 3), 0.5)])
def test_thresholds_must_fit_the_labels(threshold: float | np.ndarray) -> None:
    with pytest.raises(ValueError, match="each of 3 labels"):
        per_label(np.zeros((2, 3)), np.zeros((2, 3), np.int8), threshold)


def test_wrong_inputs() -> None:
    targets = np.zeros((2, 3), np.int8)
    with pytest.raises(ValueError, match="k must be at least 1"):
        f1_at_k(np.zeros((2, 3)), targets, 0)
    with pytest.raises(ValueError, match="label column 2 "):
        f1_scores(np.array([[0, 0, 0], [0, 0, np.nan]]), targets)
    with pytest.raises(ValueError, match="bool"):
        f1_of_decisions(np.zeros((2, 3)), targets)
    with pytest.raises(ValueError, match="bool"):
        per_label_of_decisions(np.zeros((3, 2), bool), targets)
    with pytest.raises(ValueError, match="label column 0 "):
        f1_of_decisions(np.zeros((2, 3), bool), targets + np.int8(5))

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manylabel.metric import cross_fitted_decisions, f1_of_decisions, f1_scores, fit_thresholds, per_label
from manylabel.metric.threshold import first_half


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 20), st.integers(1, 4)))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    scores = (draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 10))) / 10).astype(dtype)
    states = draw(st.sampled_from([[0, 1], [0, 1, -1], [0, 0, 0, 1]]))
    return scores, draw(hnp.arrays(np.int8, shape, elements=st.sampled_from(states)))


def literal_f1(scores: np.ndarray, targets: np.ndarray, threshold: float) -> float:
    hits = wrong = missed = 0
    for score, target in zip(scores.ravel().tolist(), targets.ravel().tolist(), strict=True):
        if target != -1:
            hits += score >= threshold and target == 1
            wrong += score >= threshold and target == 0
            missed += score < threshold and target == 1
    return 2 * hits / (2 * hits + wrong + missed) if hits else 0.0


def best_f1(scores: np.ndarray, targets: np.ndarray) -> float:
    """Every threshold in (0, 1] that decides differently."""
    return max(literal_f1(scores, targets, t) for t in {1.0, *scores.ravel().tolist()} if t > 0)


@given(cases())
@settings(max_examples=300, deadline=None)
def test_no_threshold_is_better(case: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = case
    thresholds = fit_thresholds(scores, targets, min_positives=2)
    assert ((thresholds > 0) & (thresholds <= 1)).all()
    one_sided = []
    for label, threshold in enumerate(thresholds):
        column, states = scores[:, label], targets[:, label]
        best = best_f1(column, states)
        positives, known = (states == 1).sum(), states >= 0
        if positives >= 2 and (states == 0).any() and best > 0:
            assert literal_f1(column, states, threshold) == best
        elif positives == 1 and (states == 0).any() and column[known].max() > 0:
            top = column[known].max()  # one positive: one yes, or all that are tied with the highest
            assert (column[known] >= threshold).sum() == (column[known] == top).sum()
        else:
            one_sided.append(threshold)
    if one_sided:
        assert len(set(one_sided)) == 1
        assert literal_f1(scores, targets, one_sided[0]) == best_f1(scores, targets)


def test_midway_between_the_neighbours() -> None:
    scores = np.array([[0.9], [0.8], [0.4], [0.1]])
    targets = np.array([[1], [1], [0], [0]], np.int8)
    assert fit_thresholds(scores, targets, min_positives=1)[0] == pytest.approx(0.6)
    assert fit_thresholds(scores, 1 - targets, min_positives=1)[0] == pytest.approx(0.05)  # all yes: midway to 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_neighbours_with_no_number_between(dtype: type[np.floating]) -> None:
    low = dtype(0.5)
    scores = np.array([[np.nextafter(low, dtype(1))], [low]])
    targets = np.array([[1], [0]], np.int8)
    assert per_label(scores, targets, fit_thresholds(scores, targets, min_positives=1)).f1[0] == 1.0
    tiny = np.array([[np.nextafter(dtype(0), dtype(1))], [dtype(0)]])
    assert per_label(tiny, targets, fit_thresholds(tiny, targets, min_positives=1)).f1[0] == 1.0


def test_of_equal_f1_the_highest_threshold() -> None:
    """From 0.9 (1 of 1 right, 1 missed) and from 0.2 (2 of 4 right) F1 is 2/3."""
    scores = np.array([[0.9], [0.5], [0.4], [0.2]])
    targets = np.array([[1], [0], [0], [1]], np.int8)
    assert fit_thresholds(scores, targets, min_positives=1)[0] == pytest.approx(0.7)


def test_a_rare_label_is_said_as_often_as_it_comes() -> None:
    random = np.random.default_rng(0)
    targets = np.zeros((400, 2), np.int8)
    targets[:150, 0], targets[:4, 1] = 1, 1
    scores = random.random((400, 2)) * [0.9, 0.08]  # the rare one's scores are all low, as they are early in training
    assert (scores >= fit_thresholds(scores, targets))[:, 1].sum() == 4
    assert fit_thresholds(scores, targets, min_positives=4)[1] != fit_thresholds(scores, targets)[1]


def test_one_sided_labels_take_the_pooled_threshold() -> None:
    random = np.random.default_rng(0)
    targets = (random.random((400, 4)) < 0.3).astype(np.int8)
    scores = np.clip(0.3 * targets + 0.7 * random.random(targets.shape), 0, 1)
    targets[:, 1] = 0  # no positive
    targets[:, 2] = 1  # no negative
    targets[:, 3] = -1  # nothing known
    thresholds = fit_thresholds(scores, targets)
    assert thresholds[1] == thresholds[2] == thresholds[3] != thresholds[0]
    pooled = f1_scores(scores, targets, thresholds[1]).OF1
    assert pooled >= max(f1_scores(scores, targets, other).OF1 for other in np.linspace(0.01, 1, 200))


def test_nothing_to_learn_from_gives_one_half() -> None:
    assert fit_thresholds(np.zeros((0, 2)), np.zeros((0, 2), np.int8)).tolist() == [0.5, 0.5]
    assert fit_thresholds(np.full((9, 1), 0.3), np.zeros((9, 1), np.int8)).tolist() == [0.5]
    assert fit_thresholds(np.zeros((9, 1)), np.arange(9, dtype=np.int8)[:, None] % 2, 1).tolist() == [0.5]


def test_scores_must_be_probabilities() -> None:
    with pytest.raises(ValueError, match="label column 0 are not probabilities"):
        fit_thresholds(np.array([[-2.0], [3.0]]), np.array([[0], [1]], np.int8))


def test_large_input_over_several_blocks() -> None:
    random = np.random.default_rng(3)
    targets = (random.random((3000, 700)) < 0.02).astype(np.int8)
    scores = random.random(targets.shape, np.float32) * 0.6 + 0.4 * targets
    targets[:, -1] = 0
    thresholds = fit_thresholds(scores, targets)
    for label in (0, 350, 698):
        assert per_label(scores, targets, thresholds).f1[label] == best_f1_fast(scores[:, label], targets[:, label])
    pooled = f1_scores(scores, targets, thresholds[-1]).OF1
    assert pooled == pytest.approx(best_f1_fast(scores.ravel(), targets.ravel()), abs=1e-12)


def best_f1_fast(scores: np.ndarray, targets: np.ndarray) -> float:
    """Without tied scores: F1 after each entry of the ranking."""
    hits = np.cumsum(targets[np.argsort(-scores, kind="stable")], dtype=np.int64)
    return float((2 * hits / (np.arange(1, hits.size + 1) + hits[-1])).max())


def test_each_half_is_decided_by_the_other() -> None:
    random = np.random.default_rng(0)
    targets = random.choice(np.array([0, 1, -1], np.int8), (60, 3), p=[0.5, 0.4, 0.1])
    scores = random.random(targets.shape, np.float32)
    decisions = cross_fitted_decisions(scores, targets, seed=1)
    first = first_half(targets, seed=1)
    assert first.sum() == 30
    for decided, fitted in ((first, ~first), (~first, first)):
        thresholds = fit_thresholds(scores[fitted], targets[fitted])
        assert np.array_equal(decisions[decided], scores[decided] >= thresholds)
    assert np.array_equal(decisions, cross_fitted_decisions(scores, targets, seed=1))
    assert not np.array_equal(decisions, cross_fitted_decisions(scores, targets, seed=2))


def test_noise_does_not_look_good() -> None:
    """Fitted and judged on the same noise, precision flatters; cross-fitted it is the prevalence."""
    random = np.random.default_rng(0)
    targets = (random.random((400, 200)) < 0.05).astype(np.int8)
    scores = random.random(targets.shape)
    flattered = f1_scores(scores, targets, fit_thresholds(scores, targets))
    honest = f1_of_decisions(cross_fitted_decisions(scores, targets), targets)
    assert abs(honest.OP - 0.05) < 0.005
    assert flattered.OP > 0.065
    assert flattered.CP > 1.5 * honest.CP


def test_rare_labels_are_on_both_sides() -> None:
    """Two positives, perfectly scored: with one in each half, both are found; with both in one half, none could be."""
    targets = np.zeros((200, 20), np.int8)
    for label in range(20):
        targets[[label, label + 100], label] = 1
    scores = np.where(targets == 1, 0.3, 0.2)
    scores[:, 10:] += 0.2  # a pooled threshold cannot serve both kinds of label
    for seed in range(5):
        decisions = cross_fitted_decisions(scores, targets, seed=seed, min_positives=1)
        assert np.array_equal(decisions, targets == 1)


def test_tiny_inputs() -> None:
    assert cross_fitted_decisions(np.array([[0.6, 0.4]]), np.array([[1, 1]], np.int8)).tolist() == [[True, False]]
    assert cross_fitted_decisions(np.zeros((0, 2)), np.zeros((0, 2), np.int8)).shape == (0, 2)

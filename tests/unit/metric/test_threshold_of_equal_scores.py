"""Where a threshold falls: midway also where it is pooled, and a score on it is a yes."""

from __future__ import annotations

import numpy as np
import pytest

from manylabel.metric import cross_fitted_decisions, fit_thresholds
from manylabel.metric.threshold import first_half


def test_a_pooled_threshold_is_midway_to_the_next_lower_known_score() -> None:
    """Label 0 has no negative, so it takes that of all entries: yes at 0.9, 0.8 and 0.7, no at 0.3; 0.5 is not known."""
    scores = np.array([[0.9, 0.7], [0.8, 0.3], [0.7, 0.5]])
    targets = np.array([[1, 1], [1, 0], [1, -1]], np.int8)
    assert fit_thresholds(scores, targets)[0] == pytest.approx(0.5)
    assert fit_thresholds(scores, np.where(targets < 0, 0, targets).astype(np.int8))[0] == pytest.approx(0.6)


def test_a_score_on_the_threshold_of_the_other_half_is_a_yes() -> None:
    random, on_it = np.random.default_rng(0), 0
    for seed in range(20):
        targets = (random.random((40, 3)) < 0.4).astype(np.int8)
        scores = random.integers(0, 9, targets.shape) / 8
        decisions, first = cross_fitted_decisions(scores, targets, seed), first_half(targets, seed)
        for decided, fitted in ((first, ~first), (~first, first)):
            thresholds = fit_thresholds(scores[fitted], targets[fitted])
            assert np.array_equal(decisions[decided], scores[decided] >= thresholds)
            on_it += int((scores[decided] == thresholds).sum())
    assert on_it > 0

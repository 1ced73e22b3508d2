"""Rank correlations: intervals that hold what is there, and nothing where nothing can be said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manylabel.hard import mean_within, spearman, spearman_interval


def test_an_interval_holds_the_correlation_and_chance_includes_zero() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(60), rng.random(60)
    close = spearman_interval(a, a + 0.2 * b)
    assert close.low < close.rho < close.high
    assert close.low > 0.7
    chance = spearman_interval(a, b)
    assert chance.low < 0 < chance.high
    assert chance == spearman_interval(a, b)  # the same draws every time


def test_unknown_values_are_left_out_and_few_say_nothing() -> None:
    a = np.array([1, 2, 3, 4, 5, np.nan, 7.0])
    b = np.array([1, 2, 3, 4, 5, 0.0, np.nan])
    assert spearman_interval(a, b)[:2] == (5, pytest.approx(1.0))
    assert math.isnan(spearman(a[:4], b[:4]))
    assert math.isnan(spearman(np.ones(9), np.arange(9.0)))


def test_within_groups_a_difference_between_groups_does_not_count() -> None:
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(8), 30)
    size, noise = rng.random(240), rng.random(240)
    cost = 10.0 * group - size + 0.3 * noise  # falls with size in each group, rises over groups
    within = mean_within(group, cost, size + group)
    assert within.entries == 8
    assert within.high < -0.7
    assert spearman(cost, size + group) > 0.7
    assert math.isnan(mean_within(group[:90], cost[:90], size[:90]).rho)  # three groups

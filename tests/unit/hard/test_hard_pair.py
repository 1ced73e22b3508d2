"""Hard pairs: what never changes them, what has none, and small objects that were planted."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.cli.hard import hard as command
from manylabel.hard import EASY, HARD, LIMITS, definition, find_pairs, size_of
from manylabel.labels import ABSENT, PRESENT, UNKNOWN


def some_case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = rng.choice([PRESENT, ABSENT, ABSENT, UNKNOWN], (30, 4)).astype(np.int8)
    return np.round(0.02 + 0.9 * rng.random((30, 4)), 2), matrix


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.2, 5), st.floats(0.05, 1), st.integers(0, 3))
def test_a_rising_change_of_one_labels_scores_changes_nothing(seed: int, power: float, factor: float, c: int) -> None:
    scores, matrix = some_case(seed)
    changed = scores.copy()
    changed[:, c] = factor * changed[:, c] ** power
    before, after = find_pairs(scores, matrix, 0.2, 0.1), find_pairs(changed, matrix, 0.2, 0.1)
    for name in ("row", "label", "cost", "found", "easy", "low", "hard"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name), err_msg=name)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_what_is_unknown_never_counts(seed: int) -> None:
    scores, matrix = some_case(seed)
    other = np.where(matrix == UNKNOWN, np.random.default_rng(seed + 1).random(scores.shape), scores)
    before, after = find_pairs(scores, matrix, 0.2, 0.1), find_pairs(other, matrix, 0.2, 0.1)
    assert len(before) == (matrix == PRESENT).sum()
    np.testing.assert_array_equal(before.hard, after.hard)
    np.testing.assert_array_equal(before.cost, after.cost)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_the_order_of_images_does_not_matter_and_an_instance_is_hard_beside_an_easy_one(seed: int) -> None:
    scores, matrix = some_case(seed)
    pairs = find_pairs(scores, matrix, 0.2, 0.1)
    order = np.random.default_rng(seed).permutation(len(scores))
    turned = find_pairs(scores[order], matrix[order], 0.2, 0.1)
    hard = {(order[n], c) for n, c in zip(turned.row[turned.hard], turned.label[turned.hard], strict=True)}
    assert hard == set(zip(pairs.row[pairs.hard], pairs.label[pairs.hard], strict=True))
    assert not (pairs.hard & (pairs.easy | pairs.found)).any()
    assert set(pairs.row[pairs.hard]) <= set(pairs.row[pairs.easy])


def test_everything_found_has_no_hard_pair() -> None:
    matrix = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], np.int8)
    pairs = find_pairs(np.where(matrix == PRESENT, 0.9, 0.1), matrix)
    assert pairs.easy.all()
    assert not pairs.hard.any()
    assert pairs.cost.tolist() == [0, 0, 0, 0]


def test_one_image_and_labels_that_nobody_has_or_lacks() -> None:
    one = find_pairs(np.array([[0.1, 0.9, 0.4]]), np.array([[PRESENT, PRESENT, UNKNOWN]], np.int8))
    assert len(one) == 2
    assert np.isnan(one.cost).all()
    assert not (one.hard | one.easy | one.low).any()
    nobody = find_pairs(np.full((3, 2), 0.5), np.zeros((3, 2), np.int8))
    assert len(nobody) == 0
    assert nobody.per_label(nobody.everything).tolist() == [0, 0]


def test_an_image_without_company_is_not_hard_but_low() -> None:
    matrix = np.zeros((40, 2), np.int8)
    matrix[:5, 0] = PRESENT
    matrix[0, 1] = PRESENT  # image 0 has both
    scores = np.full((40, 2), 0.2)
    scores[2:5, 0] = 0.9
    scores[0, 1] = 0.9
    scores[:2, 0] = 0.1  # missed in images 0 and 1
    pairs = find_pairs(scores, matrix)
    low = {(int(n), int(c)) for n, c in zip(pairs.row[pairs.low], pairs.label[pairs.low], strict=True)}
    assert low == {(0, 0), (1, 0)}
    assert pairs.row[pairs.hard].tolist() == [0]


def test_labels_that_are_told_apart_equally_well_are_low_equally_often() -> None:
    rng = np.random.default_rng(0)
    matrix = np.stack([rng.random(8000) < share for share in (0.02, 0.2)], axis=1).astype(np.int8)
    scores = 1 / (1 + np.exp(-(rng.normal(size=matrix.shape) + 2 * matrix)))
    pairs = find_pairs(scores, matrix)
    rare, frequent = pairs.per_label(pairs.low) / pairs.per_label(pairs.everything)
    assert 0.25 < frequent < 0.45
    assert rare == pytest.approx(frequent, abs=0.08)


def test_limits_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="must cost less"):
        find_pairs(np.zeros((1, 1)), np.zeros((1, 1), np.int8), hard=0.01, easy=0.05)


def test_the_command_has_the_same_limits_and_the_words_say_them() -> None:
    defaults = {name: p.default for name, p in inspect.signature(command).parameters.items()}
    assert (defaults["hard_cost"], defaults["easy_cost"]) == (HARD, EASY)
    assert "at least 5 % of the images" in definition()
    assert "at most 2.5 % of the images" in definition(0.1, 0.025)


def test_sizes_are_shares_of_a_photo_of_640_by_480() -> None:
    assert [round(100 * limit, 2) for limit in LIMITS] == [0.33, 3.0]
    pixels = np.array([31.0, 32.0, 95.0, 96.0, 300.0, np.nan])
    assert size_of(pixels**2 / (640 * 480)).tolist() == [0, 1, 1, 2, 2, -1]

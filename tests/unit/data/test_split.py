"""Stratified splits: complete, in the wanted sizes, every label in every part where that is possible, repeatable."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from manylabel.data.split import train_val_split
from manylabel.data.stratify import stratified_folds
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN


def long_tailed(images: int, labels: int, seed: int = 0) -> np.ndarray:
    """Label frequencies from a half down to about a thousandth, as in real data."""
    random = np.random.default_rng(seed)
    return (random.random((images, labels)) < np.geomspace(0.5, 0.001, labels)).astype(np.int8)


def counts(matrix: np.ndarray, parts: np.ndarray, n_parts: int) -> np.ndarray:
    """[parts, labels]"""
    return np.array([(matrix[parts == part] == PRESENT).sum(axis=0) for part in range(n_parts)])


def missing(matrix: np.ndarray, parts: np.ndarray, n_parts: int) -> int:
    """In how many parts labels could be but are not."""
    has = counts(matrix, parts, n_parts)
    return int((np.minimum(has.sum(axis=0), n_parts) - (has > 0).sum(axis=0)).sum())


def sizes(parts: np.ndarray, n_parts: int) -> np.ndarray:
    return np.bincount(parts, minlength=n_parts)


SHARES = st.sampled_from([(0.8, 0.2), (0.95, 0.05), (0.5, 0.5), (0.1, 0.9), (0.6, 0.2, 0.2), (0.9, 0.05, 0.05)])


def tri_state(max_images: int, max_labels: int) -> st.SearchStrategy[np.ndarray]:
    shapes = st.tuples(st.integers(3, max_images), st.integers(0, max_labels))
    return arrays(np.int8, shapes, elements=st.sampled_from([ABSENT, ABSENT, PRESENT, UNKNOWN]))


@settings(max_examples=200, deadline=None)
@given(tri_state(40, 8), SHARES, st.integers(0, 2**31))
def test_every_image_is_in_one_part_and_no_part_is_empty(
    matrix: np.ndarray, shares: tuple[float, ...], seed: int
) -> None:
    parts = stratified_folds(matrix, shares, seed)
    assert parts.shape == (len(matrix),)
    assert sizes(parts, len(shares)).sum() == len(matrix)
    assert sizes(parts, len(shares)).min() >= 1
    assert len(sizes(parts, len(shares))) == len(shares)


@settings(max_examples=200, deadline=None)
@given(tri_state(7, 6), SHARES, st.integers(0, 2**31))
def test_as_few_labels_are_missing_as_possible(matrix: np.ndarray, shares: tuple[float, ...], seed: int) -> None:
    """Against all possible splits of a few images."""
    every = np.array(list(itertools.product(range(len(shares)), repeat=len(matrix))))  # [splits, images]
    present = (matrix == PRESENT).astype(int)
    filled = sum(((every == part) @ present > 0).astype(int) for part in range(len(shares)))  # [splits, labels]
    fewest = int((np.minimum(present.sum(axis=0), len(shares)) - filled).sum(axis=1).min())
    assert missing(matrix, stratified_folds(matrix, shares, seed), len(shares)) == fewest


def test_three_images_with_a_label_on_each_two_cannot_be_halved() -> None:
    matrix = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], np.int8)
    assert missing(matrix, stratified_folds(matrix, (0.5, 0.5)), 2) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 300), st.integers(1, 60), SHARES, st.integers(0, 2**31))
def test_rare_labels_are_in_every_part(n: int, labels: int, shares: tuple[float, ...], seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = np.zeros((n, labels), np.int8)
    for label in range(labels):
        positives = random.integers(1, 6)
        matrix[random.choice(n, positives, replace=False), label] = PRESENT
    if labels * 4 > n:  # crowded: some such matrices have no perfect split
        matrix = matrix[:, : n // 4]
    assert missing(matrix, stratified_folds(matrix, shares, seed), len(shares)) == 0


@settings(max_examples=100, deadline=None)
@given(tri_state(60, 10), SHARES, st.integers(0, 2**31))
def test_sizes_are_right_unless_a_label_would_go_missing(
    matrix: np.ndarray, shares: tuple[float, ...], seed: int
) -> None:
    parts = stratified_folds(matrix, shares, seed)
    has = counts(matrix, parts, len(shares))
    excess = sizes(parts, len(shares)) - np.asarray(shares) * len(matrix)
    large, small = np.flatnonzero(excess > 1), np.flatnonzero(excess < -1)
    for source, target in itertools.product(large, small):
        locked = (has[source] == 1) & (has[target] > 0)  # the last one here of a label that is there already
        assert (matrix[parts == source][:, locked] == PRESENT).any(axis=1).all()


def test_sizes_are_exact_when_labels_are_common() -> None:
    matrix = (np.random.default_rng(0).random((997, 12)) < 0.2).astype(np.int8)
    for share in (0.05, 0.1, 0.2, 0.5, 0.73):
        held_out = (train_val_split(matrix, share) == "val").sum()
        assert abs(held_out - share * 997) < 1


@settings(max_examples=50, deadline=None)
@given(tri_state(40, 8), SHARES, st.integers(0, 2**31))
def test_the_seed_decides(matrix: np.ndarray, shares: tuple[float, ...], seed: int) -> None:
    before = matrix.copy()
    first = stratified_folds(matrix, shares, seed)
    assert (stratified_folds(np.asfortranarray(matrix), shares, seed) == first).all()
    assert (matrix == before).all()


def test_another_seed_gives_another_split() -> None:
    matrix = long_tailed(500, 20)
    assert (train_val_split(matrix, 0.2, 1) != train_val_split(matrix, 0.2, 2)).any()


@settings(max_examples=50, deadline=None)
@given(tri_state(40, 8), SHARES, st.integers(0, 2**31))
def test_unknown_counts_as_neither(matrix: np.ndarray, shares: tuple[float, ...], seed: int) -> None:
    without = np.where(matrix == UNKNOWN, ABSENT, matrix)
    assert (stratified_folds(matrix, shares, seed) == stratified_folds(without, shares, seed)).all()


def deviation(matrix: np.ndarray, held_out: np.ndarray, share: float) -> float:
    support = (matrix == PRESENT).sum(axis=0)
    return float(np.abs((matrix[held_out] == PRESENT).sum(axis=0) / support - share).mean())


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_shares_are_as_close_as_whole_images_allow(share: float) -> None:
    matrix = long_tailed(3000, 40)
    matrix = matrix[:, (matrix == PRESENT).sum(axis=0) >= 2]
    support = (matrix == PRESENT).sum(axis=0)
    whole = np.clip(np.round(support * share), 1, support - 1)
    closest = float(np.abs(whole / support - share).mean())
    assert deviation(matrix, train_val_split(matrix, share) == "val", share) <= closest + 0.002


def test_the_order_of_images_and_labels_does_not_matter_to_the_quality() -> None:
    matrix, random = long_tailed(1500, 30), np.random.default_rng(0)
    usual = deviation(matrix, train_val_split(matrix) == "val", 0.2)
    for _ in range(5):
        shuffled = matrix[random.permutation(1500)][:, random.permutation(30)]
        held_out = train_val_split(shuffled) == "val"
        assert held_out.sum() == 300
        assert missing(shuffled, held_out.astype(int), 2) == 0
        assert abs(deviation(shuffled, held_out, 0.2) - usual) < 0.003


def test_images_without_labels_are_spread_by_the_shares() -> None:
    matrix = (np.random.default_rng(0).random((1000, 5)) < 0.2).astype(np.int8)
    matrix[:400] = ABSENT
    matrix[400:500] = UNKNOWN
    empty = ~(matrix == PRESENT).any(axis=1)
    held_out = train_val_split(matrix) == "val"
    assert abs(held_out[empty].sum() - 0.2 * empty.sum()) <= 2


def test_equal_folds_for_cross_validation() -> None:
    matrix = long_tailed(1000, 25)
    parts = stratified_folds(matrix, [0.2] * 5)
    assert sizes(parts, 5).tolist() == [200] * 5
    assert missing(matrix, parts, 5) == 0
    has = counts(matrix, parts, 5)
    assert (has.max(axis=0) - has.min(axis=0)).max() <= 2


def test_a_label_on_two_images_is_on_both_sides_even_of_a_tiny_part() -> None:
    matrix = np.zeros((1000, 3), np.int8)
    matrix[:2, 0] = matrix[2:4, 1] = matrix[4:900, 2] = PRESENT
    parts = train_val_split(matrix, 0.01)
    assert set(parts[:2]) == set(parts[2:4]) == {"train", "val"}
    assert (parts == "val").sum() == 10


def test_rare_labels_may_make_a_part_larger_but_no_more_than_needed() -> None:
    matrix = np.zeros((100, 30), np.int8)
    for label in range(30):
        matrix[2 * label : 2 * label + 2, label] = PRESENT  # 30 labels with two images each want 30 held out
    parts = train_val_split(matrix, 0.05)
    assert missing(matrix, (parts == "val").astype(int), 2) == 0
    assert (parts == "val").sum() == 30


def test_no_labels_at_all() -> None:
    assert (train_val_split(np.zeros((50, 0), np.int8), 0.2) == "val").sum() == 10
    assert sorted(train_val_split(np.zeros((2, 3), np.int8))) == ["train", "val"]


@pytest.mark.parametrize("share", [0, 1, -0.2, 1.5, float("nan")])
def test_a_share_that_makes_no_sense(share: float) -> None:
    with pytest.raises(DataError, match="set it between 0 and 1"):
        train_val_split(np.zeros((10, 2), np.int8), share)


def test_too_few_images() -> None:
    for n in (0, 1):
        with pytest.raises(DataError, match="add images"):
            train_val_split(np.zeros((n, 2), np.int8))
    with pytest.raises(DataError, match="ask for fewer parts"):
        stratified_folds(np.zeros((2, 2), np.int8), (0.4, 0.3, 0.3))


@pytest.mark.parametrize("shares", [(), (0.5, 0.4), (1.2, -0.2), (1.0, 0.0)])
def test_shares_that_do_not_add_up(shares: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="sum to 1"):
        stratified_folds(np.zeros((10, 2), np.int8), shares)


@pytest.mark.slow
def test_a_hundred_thousand_images_with_a_thousand_labels() -> None:
    """MT4: 50 of the labels have 2 to 5 positives."""
    random = np.random.default_rng(0)
    matrix = np.zeros((100_000, 1000), np.int8)
    for label in range(50):
        matrix[random.choice(100_000, random.integers(2, 6), replace=False), label] = PRESENT
    for label, frequency in enumerate(np.geomspace(0.0002, 0.05, 950), start=50):
        matrix[random.random(100_000) < frequency, label] = PRESENT
    started = time.process_time()
    held_out = train_val_split(matrix) == "val"
    assert time.process_time() - started < 30
    assert held_out.sum() == 20_000
    assert missing(matrix, held_out.astype(int), 2) == 0
    assert deviation(matrix[:, 50:], held_out, 0.2) < 0.004

"""How good a split is where it is hard: many labels at once, labels on one image, few images, shares that do not fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from manylabel.data.stratify import stratified_folds

SHARES = [(0.8, 0.2), (0.6, 0.2, 0.2)]


def sizes(parts: np.ndarray, shares: tuple[float, ...]) -> list[int]:
    return np.bincount(parts, minlength=len(shares)).tolist()


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("seed", range(4))
def test_many_common_labels_get_their_shares_all_at_once(shares: tuple[float, ...], seed: int) -> None:
    """Ten labels on every image: dealt out alone they are more than a hundredth off, exchanged half of that."""
    matrix = (np.random.default_rng(seed).random((200, 20)) < 0.5).astype(np.int8)
    parts = stratified_folds(matrix, shares, seed)
    support = matrix.sum(axis=0)
    apart = [np.abs(matrix[parts == i].sum(axis=0) / support - share) for i, share in enumerate(shares)]
    assert np.mean(apart) < 0.008


@pytest.mark.parametrize("shares", SHARES)
def test_images_with_a_label_of_their_own_are_dealt_out_by_the_shares(shares: tuple[float, ...]) -> None:
    assert sizes(stratified_folds(np.eye(100, dtype=np.int8), shares), shares) == [round(100 * s) for s in shares]


@pytest.mark.parametrize("images", range(3, 12))
@pytest.mark.parametrize("shares", [(0.9, 0.05, 0.05), (0.98, 0.01, 0.01), (0.01, 0.98, 0.01)])
def test_a_part_with_a_tiny_share_gets_an_image(images: int, shares: tuple[float, ...]) -> None:
    got = sizes(stratified_folds(np.zeros((images, 2), np.int8), shares), shares)
    assert sorted(got) == [1, 1, images - 2]
    assert got.index(max(got)) == shares.index(max(shares)) or images == 3


@pytest.mark.parametrize("images", [7, 13, 28, 54, 61, 97, 102])
@pytest.mark.parametrize("shares", [(0.8, 0.2), (0.2, 0.8), (0.35, 0.65)])
def test_sizes_are_the_nearest_whole_numbers(images: int, shares: tuple[float, ...]) -> None:
    got = sizes(stratified_folds(np.zeros((images, 2), np.int8), shares), shares)
    assert got == [round(images * share) for share in shares]


def missing(matrix: np.ndarray, parts: np.ndarray, number: int) -> int:
    """In how many parts labels could be but are not."""
    has = np.array([matrix[parts == part].sum(axis=0) for part in range(number)])
    return int((np.minimum(has.sum(axis=0), number) - (has > 0).sum(axis=0)).sum())


def test_labels_that_are_hard_to_place_are_found_a_place() -> None:
    """Thirty labels on three of sixty images each, one in each part of a hidden split: dealing alone misses 33 places."""
    lost = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        hidden, matrix = random.permutation(np.arange(60) % 3), np.zeros((60, 30), np.int8)
        for label, part in itertools.product(range(30), range(3)):
            matrix[random.choice(np.flatnonzero(hidden == part)), label] = 1
        lost += missing(matrix, stratified_folds(matrix, (0.4, 0.3, 0.3), seed), 3)
    assert lost <= 15


def test_the_best_that_was_found_is_kept() -> None:
    """Nine labels on two of six images each cannot all be in both parts; the search goes on until it must end."""
    random, matrix = np.random.default_rng(0), np.zeros((6, 9), np.int8)
    for label in range(9):
        matrix[random.choice(6, 2, replace=False), label] = 1
    fewest = min(missing(matrix, np.array(parts), 2) for parts in itertools.product((0, 1), repeat=6))
    assert fewest > 0
    for seed in range(40):
        assert missing(matrix, stratified_folds(matrix, (0.5, 0.5), seed), 2) == fewest

"""Splits that keep groups together: complete, close to the wanted shares, every label where it can be."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.data.split import joined_groups, part_names_and_shares, train_val_split
from manylabel.data.stratify import stratified_folds
from manylabel.error import DataError


def grouped_folds(matrix: np.ndarray, groups: np.ndarray, shares: tuple[float, ...], seed: int = 0) -> np.ndarray:
    return stratified_folds(matrix, shares, seed, groups)


def _data(images: int, labels: int, groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = (rng.random((images, labels)) < rng.beta(0.6, 8, labels) + 0.002).astype(np.int8)
    return matrix, rng.integers(0, groups, images)


def _together(parts: np.ndarray, groups: np.ndarray) -> bool:
    first = dict(zip(groups.tolist(), parts.tolist(), strict=True))
    return all(first[group] == part for group, part in zip(groups.tolist(), parts.tolist(), strict=True))


@pytest.mark.parametrize("shares", [(0.8, 0.2), (0.7, 0.1, 0.2), (0.2,) * 5])
def test_shares_of_sizes_and_labels(shares: tuple[float, ...]) -> None:
    matrix, groups = _data(8000, 40, 1500)
    parts = grouped_folds(matrix, groups, shares)
    assert _together(parts, groups)
    total = (matrix == 1).sum(axis=0)
    for i, share in enumerate(shares):
        assert abs((parts == i).mean() - share) < 0.005
        has = ((matrix == 1) & (parts == i)[:, None]).sum(axis=0)
        assert np.abs(has / total - share)[total >= 50].mean() < 0.01
        assert (has > 0).all()


def test_rare_labels_are_on_both_sides() -> None:
    matrix, groups = _data(3000, 20, 600)
    rng = np.random.default_rng(1)
    for label in range(10):  # two to five positives, in at least two groups
        matrix[:, label] = 0
        matrix[rng.choice(3000, 2 + label % 4, replace=False), label] = 1
    holders = np.array([len(np.unique(groups[matrix[:, label] == 1])) for label in range(20)])
    parts = grouped_folds(matrix, groups, (0.8, 0.2))
    for side in (0, 1):
        has = ((matrix == 1) & (parts == side)[:, None]).sum(axis=0)
        assert (has[holders >= 2] > 0).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 40), st.integers(1, 5), st.integers(2, 12), st.integers(0, 10_000))
def test_any_data_is_split_completely_and_the_same_way_again(images: int, labels: int, groups: int, seed: int) -> None:
    matrix, ids = _data(images, labels, groups, seed)
    matrix[np.random.default_rng(seed).random(matrix.shape) < 0.2] = -1
    if len(np.unique(ids)) < 2:
        with pytest.raises(DataError, match="1 group"):
            grouped_folds(matrix, ids, (0.5, 0.5))
        return
    parts = grouped_folds(matrix, ids, (0.5, 0.5), seed)
    assert set(parts.tolist()) <= {0, 1}
    assert _together(parts, ids)
    assert (parts == grouped_folds(matrix, ids, (0.5, 0.5), seed)).all()


@pytest.mark.slow
def test_large_data_in_time() -> None:
    matrix, groups = _data(100_000, 1000, 30_000)
    start = time.process_time()
    parts = grouped_folds(matrix, groups, (0.8, 0.2))
    assert time.process_time() - start < 30
    assert abs((parts == 1).mean() - 0.2) < 0.002


def test_groups_are_joined() -> None:
    patients = np.array(["ann", "", "ann", "bob", "", ""])
    alike = np.array([-1, 7, -1, 7, 8, -1])
    joined = joined_groups(patients, alike)
    assert joined is not None
    assert joined[0] == joined[2]
    assert joined[1] == joined[3]
    assert len(set(joined.tolist())) == 4
    assert joined_groups(None, None) is None


def test_the_usual_door_takes_groups() -> None:
    matrix, groups = _data(400, 6, 60)
    split = train_val_split(matrix, 0.25, groups=groups)
    assert _together(split, groups)
    assert abs((split == "val").mean() - 0.25) < 0.02


def test_shares_that_leave_nothing_are_refused() -> None:
    assert part_names_and_shares(0.2, 0.1, None)[0] == ["train", "val", "test"]
    assert part_names_and_shares(0.2, 0.0, 4) == (["0", "1", "2", "3"], [0.25] * 4)
    with pytest.raises(DataError, match="leave nothing to train on"):
        part_names_and_shares(0.6, 0.4, None)

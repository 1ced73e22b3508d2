"""How good a split is that keeps groups together, where a few groups hold most of the images and most labels are rare."""

from __future__ import annotations

import numpy as np

from manylabel.data.stratify import stratified_folds


def grouped_folds(matrix: np.ndarray, groups: np.ndarray, shares: tuple[float, ...], seed: int = 0) -> np.ndarray:
    return stratified_folds(matrix, shares, seed, groups)


SHARES = (0.7, 0.15, 0.15)


def case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """1000 images in up to 200 groups of very different sizes, 40 labels of which most are rare."""
    random = np.random.default_rng(seed)
    groups = random.choice(200, 1000, p=random.dirichlet(np.full(200, 0.3)))
    matrix = (random.random((1000, 40)) < random.beta(0.6, 8, 40) + 0.003).astype(np.int8)
    return matrix, groups


def test_rare_labels_and_sizes_over_many_splits() -> None:
    lost, apart = 0, []
    for seed in range(40):
        matrix, groups = case(seed)
        parts = grouped_folds(matrix, groups, SHARES, seed)
        has = np.array([matrix[parts == part].sum(axis=0) for part in range(3)])
        holders = np.array([len(np.unique(groups[column == 1])) for column in matrix.T])
        lost += int((has == 0)[:, holders >= 3].sum())
        apart.append(np.abs(np.bincount(parts, minlength=3) / 1000 - SHARES).max())
    assert lost <= 3  # of about 4500 labels in parts; 9 without the repair
    assert np.mean(apart) < 0.0125  # 0.0145 without the moves that improve it

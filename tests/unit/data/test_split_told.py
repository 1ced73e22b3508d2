"""What is said of a split is what was split: sizes, shares, groups, labels that are missing or too rare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from manylabel.data.split import part_names_and_shares, split_table, train_val_split
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import LabelSpace


def table(matrix: np.ndarray) -> Table:
    source: Any = None  # no image is read
    names = LabelSpace(tuple(f"label {i}" for i in range(matrix.shape[1])))
    return Table("some", source, np.array([f"{i}.jpg" for i in range(len(matrix))]), names, matrix)


def random_matrix(images: int, seed: int = 0) -> np.ndarray:
    """Five labels with about 60 % of the images down to 5 %, a sixth on one image, a seventh on none."""
    random = np.random.default_rng(seed)
    matrix = (random.random((images, 7)) < [0.6, 0.4, 0.3, 0.1, 0.05, 0, 0]).astype(np.int8)
    matrix[random.random(matrix.shape) < 0.1] = -1
    matrix[7, 5] = 1
    return matrix


def literal_deviation(matrix: np.ndarray, parts: list[str], wanted: dict[str, float]) -> float:
    apart = []
    for label in range(matrix.shape[1]):
        images = [i for i in range(len(matrix)) if matrix[i, label] == 1]
        if len(images) >= len(wanted):
            apart += [
                abs(sum(parts[i] == part for i in images) / len(images) - share) for part, share in wanted.items()
            ]
    return sum(apart) / len(apart)


@pytest.mark.parametrize(("val", "test", "folds"), [(0.2, 0.1, None), (0.25, 0.0, None), (0.0, 0.0, 3), (0.0, 0.0, 1)])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_told_of_a_split(val: float, test: float, folds: int | None, grouped: bool) -> None:
    matrix = random_matrix(90)
    names, shares = part_names_and_shares(val, test, folds)
    groups = np.repeat(np.arange(60), [2, 1] * 30) if grouped else None
    result = split_table(table(matrix), names, shares, seed=3, groups=groups)
    parts = result.parts.tolist()
    assert result.sizes == {name: parts.count(name) for name in names}
    assert sum(result.sizes.values()) == 90
    assert result.wanted == dict(zip(names, shares, strict=True))
    assert result.groups == (30 if grouped else None)
    support = (matrix == 1).sum(axis=0)
    assert result.too_rare == (support < len(names)).sum()
    assert result.deviation == pytest.approx(literal_deviation(matrix, parts, result.wanted))
    assert result.missing == {name: [] for name in names}
    assert not np.array_equal(result.parts, split_table(table(matrix), names, shares, 4, groups).parts) or folds == 1


def test_a_label_that_a_group_keeps_from_a_part_is_named() -> None:
    matrix = random_matrix(60)
    matrix[:, 6] = 0
    matrix[:4, 6] = 1  # in one group
    result = split_table(table(matrix), ["train", "val"], [0.8, 0.2], groups=np.maximum(np.arange(60), 3))
    (kept,) = {*result.parts[:4].tolist()}
    assert result.missing == {part: [] if part == kept else ["label 6"] for part in ("train", "val")}


def test_no_label_at_all_is_no_deviation() -> None:
    result = split_table(table(np.zeros((10, 0), np.int8)), ["train", "val"], [0.8, 0.2])
    assert (result.sizes, result.deviation, result.too_rare) == ({"train": 8, "val": 2}, 0.0, 0)


def test_shares_of_the_parts() -> None:
    names, shares = part_names_and_shares(0.2, 0.1, None)
    assert dict(zip(names, shares, strict=True)) == pytest.approx({"train": 0.7, "val": 0.2, "test": 0.1})
    names, shares = part_names_and_shares(0.2, 0.0, None)
    assert dict(zip(names, shares, strict=True)) == pytest.approx({"train": 0.8, "val": 0.2})


@pytest.mark.parametrize(
    ("val", "test"), [(0.0, 0.1), (1.0, 0.0), (-0.1, 0.2), (0.2, -0.1), (0.2, 1.0), (0.5, 0.5), (0.9, 0.9)]
)
def test_shares_that_leave_a_part_without_images(val: float, test: float) -> None:
    with pytest.raises(DataError, match="leave nothing to train on"):
        part_names_and_shares(val, test, None)


def test_a_split_is_that_of_seed_0_and_of_a_fifth_unless_asked_otherwise() -> None:
    matrix = random_matrix(100)
    assert np.array_equal(train_val_split(matrix), train_val_split(matrix, 0.2, seed=0))
    assert not np.array_equal(train_val_split(matrix), train_val_split(matrix, 0.2, seed=1))
    assert sorted(train_val_split(matrix[:2])) == ["train", "val"]

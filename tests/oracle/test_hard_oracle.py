"""Hard instances and AP by object size against literal loops over their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manylabel.hard import find_pairs, largest_shares, scored_labels, size_of, sized_matrix, spearman
from manylabel.labels import ABSENT, PRESENT, UNKNOWN
from manylabel.metric import average_precision, fit_thresholds


def case(seed: int, images: int = 40, labels: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Scores with many ties, and labels that are present, absent or unknown."""
    rng = np.random.default_rng(seed)
    matrix = rng.choice([PRESENT, ABSENT, ABSENT, UNKNOWN], (images, labels)).astype(np.int8)
    scores = np.round(rng.random((images, labels)) * 0.6 + 0.4 * (matrix == PRESENT), 1).astype(np.float32)
    return scores.clip(0, 1), matrix


def literal_hard(scores: np.ndarray, matrix: np.ndarray, hard: float, easy: float) -> dict[tuple[int, int], str]:
    """(image, label) → state, one image and one label after the other."""
    thresholds = fit_thresholds(scores, matrix)
    cost, found = {}, {}
    for n in range(len(matrix)):
        for c in range(matrix.shape[1]):
            if matrix[n, c] != PRESENT:
                continue
            without = [m for m in range(len(matrix)) if matrix[m, c] == ABSENT]
            as_high = [m for m in without if scores[m, c] >= scores[n, c]]
            cost[n, c] = len(as_high) / len(without) if without else math.nan
            found[n, c] = scores[n, c] >= thresholds[c]
    states = {}
    for (n, c), price in cost.items():
        easy_others = [d for m, d in cost if m == n and d != c and found[n, d] and cost[n, d] <= easy]
        if not found[n, c] and price >= hard and easy_others:
            states[n, c] = "hard"
        elif found[n, c] and price <= easy:
            states[n, c] = "easy"
        else:
            states[n, c] = "other"
    return states


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("hard", "easy"), [(0.05, 0.01), (0.2, 0.1), (0.5, 0.0)])
def test_hard_and_easy_pairs_are_those_of_the_loops(seed: int, hard: float, easy: float) -> None:
    scores, matrix = case(seed)
    pairs = find_pairs(scores, matrix, hard, easy)
    expected = literal_hard(scores, matrix, hard, easy)
    assert list(zip(pairs.row.tolist(), pairs.label.tolist(), strict=True)) == sorted(expected)
    for n, c, is_hard, is_easy in zip(pairs.row, pairs.label, pairs.hard, pairs.easy, strict=True):
        assert {"hard": (True, False), "easy": (False, True), "other": (False, False)}[expected[n, c]] == (
            is_hard,
            is_easy,
        )


def test_the_cases_have_hard_pairs() -> None:
    assert sum(find_pairs(*case(seed), 0.2, 0.1).hard.sum() for seed in range(8)) > 10


def literal_average_precision(scores: list[float], positive: list[bool]) -> float:
    """Mean over positives of the precision among everything that scores as high."""
    precisions = []
    for mine, is_positive in zip(scores, positive, strict=True):
        if is_positive:
            above = [p for s, p in zip(scores, positive, strict=True) if s >= mine]
            precisions.append(sum(above) / len(above))
    return sum(precisions) / len(precisions)


@pytest.mark.parametrize("seed", range(4))
def test_ap_by_size_is_that_of_the_loops(seed: int) -> None:
    scores, matrix = case(seed, images=60)
    pairs = find_pairs(scores, matrix)
    share = np.random.default_rng(seed).choice([0.001, 0.01, 0.2, np.nan], len(pairs))
    size = size_of(share)
    of_pair = {(n, c): s for n, c, s in zip(pairs.row.tolist(), pairs.label.tolist(), share.tolist(), strict=True)}
    for which, (least, most) in enumerate(((0, 0.00333), (0.00334, 0.0299), (0.03, 1))):
        sized = sized_matrix(matrix, pairs, size, which)
        chosen = scored_labels(sized, 3)
        ap = average_precision(scores, sized)
        for c in range(matrix.shape[1]):
            rows = [
                n
                for n in range(len(matrix))
                if matrix[n, c] == ABSENT or (matrix[n, c] == PRESENT and least <= of_pair[n, c] <= most)
            ]
            positive = [bool(matrix[n, c] == PRESENT) for n in rows]
            assert (c in chosen) == (sum(positive) >= 3 and not all(positive))
            if any(positive):
                assert ap[c] == pytest.approx(literal_average_precision([float(scores[n, c]) for n in rows], positive))


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_box_of_a_pair_is_that_of_the_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, label = np.nonzero(rng.random((12, 4)) < 0.5)
    of_box = rng.integers(0, 12, 30), rng.integers(0, 6, 30)  # labels 4 and 5 have no pair
    corner = rng.integers(-5, 60, (30, 2))
    boxes = np.concatenate([corner, corner + rng.integers(-3, 90, (30, 2))], axis=1).astype(np.float32)
    area = np.where(rng.random(12) < 0.8, 5000.0, np.nan)
    found = largest_shares((row, label), of_box, boxes, area)
    for n, c, value in zip(row, label, found, strict=True):
        shares = [
            min(1, max(0, right - left) * max(0, bottom - top) / 5000)
            for m, d, (left, top, right, bottom) in zip(*of_box, boxes.tolist(), strict=True)
            if (m, d) == (n, c) and not math.isnan(area[n])
        ]
        largest = max(shares, default=0)
        assert (math.isnan(value) and not largest) or value == pytest.approx(largest)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=5, max_size=30))
def test_rank_correlation_is_that_of_the_loops(values: list[tuple[int, int]]) -> None:
    def places(column: list[int]) -> list[float]:
        return [sum(w < v for w in column) + (sum(w == v for w in column) + 1) / 2 for v in column]

    a, b = (places([pair[k] for pair in values]) for k in (0, 1))
    middle = (len(values) + 1) / 2
    products = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    scale = math.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    found = spearman(*np.array(values, float).T)
    assert math.isnan(found) if scale == 0 else found == pytest.approx(products / scale, abs=1e-9)

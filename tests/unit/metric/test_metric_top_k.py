from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import top_k_accuracy_score

from manylabel.metric import top_k_accuracy


@pytest.mark.parametrize("k", [1, 3, 5])
def test_equals_scikit_learn(k: int) -> None:
    rng = np.random.default_rng(k)
    scores, label = rng.random((200, 8)), rng.integers(8, size=200)
    matrix = (np.arange(8) == label[:, None]).astype(np.int8)
    value, judged = top_k_accuracy(scores, matrix, k)
    assert judged == 200
    assert abs(value - top_k_accuracy_score(label, scores, k=k, labels=range(8))) < 1e-12


def test_of_equal_scores_the_first_label_wins() -> None:
    scores = np.array([[0.5, 0.5, 0.1]])
    assert top_k_accuracy(scores, np.array([[1, 0, 0]]), 1)[0] == 1
    assert top_k_accuracy(scores, np.array([[0, 1, 0]]), 1)[0] == 0
    assert top_k_accuracy(scores, np.array([[0, 1, 0]]), 2)[0] == 1


def test_images_without_exactly_one_label_are_not_judged() -> None:
    scores = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    value, judged = top_k_accuracy(scores, np.array([[1, 0], [1, 1], [-1, -1]]), 1)
    assert (value, judged) == (1.0, 1)
    value, judged = top_k_accuracy(scores, np.zeros((3, 2), np.int8), 1)
    assert math.isnan(value)
    assert judged == 0

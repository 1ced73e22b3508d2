"""The k best of an image are the k best of a thousand labels too."""

from __future__ import annotations

import numpy as np
import pytest

from manylabel.metric import f1_at_k


@pytest.mark.parametrize("k", [1, 2, 3, 10, 400])
def test_the_best_of_a_thousand_labels(k: int) -> None:
    random = np.random.default_rng(k)
    scores = random.random((20, 1000))
    best = np.argsort(-scores, axis=1)[:, :k]
    targets = np.zeros(scores.shape, np.int8)
    np.put_along_axis(targets, best, 1, axis=1)
    assert (f1_at_k(scores, targets, k).OP, f1_at_k(scores, targets, k).OR) == (1.0, 1.0)

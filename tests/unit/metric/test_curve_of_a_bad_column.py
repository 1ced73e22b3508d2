"""A curve is of one label, and an error of its scores names that column: the first."""

from __future__ import annotations

import numpy as np
import pytest

from manylabel.metric import precision_recall_curve


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_only_column_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match="label column 0 "):
        precision_recall_curve(np.array([0.1, bad]), np.array([1, 0], np.int8))
    with pytest.raises(ValueError, match="label column 0 "):
        precision_recall_curve(np.array([0.1, 0.2]), np.array([1, 7], np.int8))


def test_any_scores_may_be_ranked() -> None:
    """They need not be probabilities."""
    precision, recall, threshold = precision_recall_curve(np.array([-3.0, 8.0]), np.array([1, 0], np.int8))
    assert (precision.tolist(), recall.tolist(), threshold.tolist()) == ([0.0, 0.5], [0.0, 1.0], [8.0, -3.0])

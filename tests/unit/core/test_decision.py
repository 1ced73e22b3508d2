"""Scores and decisions in NumPy are those of torch, up to the last bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manylabel.core.decision import decide, scores_of
from manylabel.task import Classification, MultiLabel, SingleLabel

HARD = [[0.0, -0.0, 1e-8, -1e-8, 80.0, -80.0, 1000.0, -1000.0, 88.7, -103.9]]


@pytest.mark.parametrize("task", [MultiLabel(), SingleLabel("softmax"), SingleLabel()], ids=str)
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_scores_are_those_of_torch(task: Classification, spread: float) -> None:
    drawn = np.random.default_rng(0).normal(size=(50, 10), scale=spread).astype(np.float32)
    logits = np.concatenate([drawn, np.array(HARD, np.float32)])
    ours, theirs = scores_of(logits, task.activation), task.probabilities(torch.from_numpy(logits)).numpy()
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() <= 1e-6
    assert ours.min() >= 0
    assert ours.max() <= 1


def test_a_score_at_its_threshold_is_a_yes_and_one_label_is_the_highest() -> None:
    scores, thresholds = np.array([[0.3, 0.2, 0.3], [0.1, 0.9, 0.2]]), np.array([0.3, 0.9, 0.4])
    assert decide(scores, thresholds).tolist() == [[True, False, False], [False, True, False]]
    assert decide(scores, thresholds, single=True).tolist() == [[True, False, False], [False, True, False]]
    assert decide(scores[:, ::-1], np.zeros(3), single=True).tolist() == [[True, False, False], [False, True, False]]

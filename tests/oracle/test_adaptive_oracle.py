"""Adaptive expert selection against Algorithm 1 of AdaMV-MoE, transcribed task by task."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from manylabel.expert import AdaptiveSelection

LOSSES = st.one_of(st.floats(0, 2, width=32), st.sampled_from([0.5, 1.0, math.nan]))


class LiteralTask:
    """Lines 3–20 of the algorithm for one task; a step of its `while` for every loss that was measured."""

    def __init__(self, most: int, patience: int, least: float) -> None:
        self.k, self.improved, self.best, self.mark, self.least = 1, True, math.inf, math.inf, least
        self.waited, self.fixed, self.most, self.patience = 0, False, most, patience

    def continue_training(self, loss: float, iterations: int, time_to_grow: bool) -> None:
        if self.fixed or math.isnan(loss):
            return
        if loss < self.best:
            self.best, self.improved = loss, True
        if self.mark == math.inf or loss < self.mark - self.least * self.mark:
            self.mark, self.waited = loss, 0
        else:
            self.waited += iterations
        if self.waited < self.patience:
            return
        if not self.improved:
            self.k, self.fixed = self.k - 1, True  # "k_j = k_j − 1 and fix k_j"
        elif self.k == self.most:
            self.fixed = True
        elif time_to_grow:
            self.k, self.improved, self.waited, self.mark = self.k + 1, False, 0, self.best


@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.sampled_from([0.0, 0.5]))
def test_every_task_follows_algorithm_1_alone(
    data: st.DataObject, tasks: int, most: int, patience: int, least: float
) -> None:
    sequence = data.draw(st.lists(st.lists(LOSSES, min_size=tasks, max_size=tasks), min_size=1, max_size=25))
    ours = AdaptiveSelection(tasks, most, patience, min_decrease=least)
    literal = [LiteralTask(most, patience, least) for _ in range(tasks)]
    for losses in sequence:
        iterations = data.draw(st.integers(1, 3))
        before = ours.k.clone()
        time_to_grow = data.draw(st.booleans())
        change = ours.update(torch.tensor(losses), iterations, time_to_grow)
        for task, loss in zip(literal, losses, strict=True):
            task.continue_training(loss, iterations, time_to_grow)
        assert ours.k.tolist() == [task.k for task in literal]
        assert ours.fixed.tolist() == [task.fixed for task in literal]
        assert torch.equal(ours.k, before + change)
        assert (ours.k >= 1).all()
        assert (ours.k <= most).all()


def test_a_decrease_may_come_little_by_little() -> None:
    """What falls by too little for a while may grow, and keeps its growth where it goes on falling at all."""
    selection = AdaptiveSelection(3, 8, patience=2, min_decrease=0.1)
    quick, slow, none = 1.0, 1.0, 1.0
    for _ in range(4):
        selection.update(torch.tensor([quick, slow, none]))
        quick, slow = quick * 0.94, slow * 0.99
    assert selection.k.tolist() == [1, 2, 2]  # two small steps of the first are one decrease
    for _ in range(2):
        selection.update(torch.tensor([quick, slow, none]))
        quick, slow = quick * 0.94, slow * 0.99
    assert selection.k.tolist() == [1, 3, 1]
    assert selection.fixed.tolist() == [False, False, True]


def test_a_stored_state_goes_on_alike() -> None:
    torch.manual_seed(0)
    losses = torch.rand(30, 5)
    whole = AdaptiveSelection(5, 4, 2)
    for row in losses:
        whole.update(row)
    first = AdaptiveSelection(5, 4, 2)
    for row in losses[:13]:
        first.update(row)
    second = AdaptiveSelection(5, 4, 2)
    second.load_state_dict(first.state_dict())
    for row in losses[13:]:
        second.update(row)
    assert torch.equal(second.k, whole.k)
    assert torch.equal(second.fixed, whole.fixed)

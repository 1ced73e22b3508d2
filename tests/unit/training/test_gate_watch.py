"""Gates that collapse are said aloud, and what they do is written down."""

from __future__ import annotations

import numpy as np
import pytest

from manylabel.expert import ExpertUse, Gates
from manylabel.labels import ABSENT, PRESENT, UNKNOWN
from manylabel.loss import LOSSES
from manylabel.training.gate_watch import collapse, gate_figures
from manylabel.training.label_loss import label_losses


def used(*layers: np.ndarray) -> ExpertUse:
    return ExpertUse(Gates(("shared 1", "own 1"), (0, 1), (1, 3)), list(layers), images=2)


def test_one_expert_that_takes_over_is_named() -> None:
    even, taken = np.array([[0.5, 0.5], [0.4, 0.6]]), np.array([[0.05, 0.95], [0.01, 0.99]])
    assert collapse(used(even)) == []
    (sentence,) = collapse(used(even, taken))
    assert "layer 2 give 97 % to one expert (own 1), the labels' own" in sentence
    figures = gate_figures(used(even, taken))
    assert figures["gate_entropy_1"] > 0.9 > figures["gate_entropy_2"]
    assert figures["gates_collapsed_2"] == 2
    assert figures["experts_allowed"] == 2
    assert collapse(None) == []
    assert gate_figures(None) == {}


@pytest.mark.parametrize("name", ["bce", "asl", "cross_entropy"])
def test_losses_of_labels(name: str) -> None:
    scores = np.array([[0.9, 0.2, 0.5], [0.8, 0.3, 0.0]], np.float32)
    matrix = np.array([[PRESENT, ABSENT, UNKNOWN], [ABSENT, UNKNOWN, UNKNOWN]], np.int8)
    losses = label_losses(LOSSES.build(name), scores, matrix)
    assert np.isnan(losses[2])
    if name == "asl":
        assert losses[1] == pytest.approx((0.2 - 0.05) ** 4 * -np.log(0.85), rel=1e-4)
    else:
        assert losses[0] == pytest.approx(-(np.log(0.9) + np.log(0.2)) / 2, rel=1e-4)
        assert losses[1] == pytest.approx(-np.log(0.8), rel=1e-4)

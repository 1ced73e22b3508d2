"""Gates that collapse are said aloud, and what they do is written down."""

from __future__ import annotations

import numpy as np
import pytest

from manylabel.expert import ExpertUse, Gates
from manylabel.labels import ABSENT, PRESENT, UNKNOWN
from manylabel.loss import LOSSES
from manylabel.training.gate_watch import gate_figures, gate_warnings
from manylabel.training.label_loss import label_losses


def used(*layers: np.ndarray, similarity: tuple[float, ...] = ()) -> ExpertUse:
    """Gates that do the same in every image."""
    share = np.log(layers[0].shape[1])
    entropies = [-(layer * np.log(np.maximum(layer, 1e-12))).sum(axis=1) / share for layer in layers]
    return ExpertUse(Gates(("shared 1", "own 1"), (0, 1), (1, 3)), list(layers), entropies, 2, similarity)


MIXED, TAKEN = np.array([[0.5, 0.5], [0.3, 0.7]]), np.array([[0.05, 0.95], [0.01, 0.99]])
EVEN, APART = np.full((2, 2), 0.5), np.array([[0.99, 0.01], [0.01, 0.99]])


def test_one_expert_that_takes_over_is_named() -> None:
    assert gate_warnings(used(MIXED)) == []
    (sentence,) = gate_warnings(used(MIXED, TAKEN))
    assert "layer 2 of the head: 2 of 2 gates give more than 90 % to one expert (own 1), the labels' own" in sentence
    figures = gate_figures(used(MIXED, TAKEN, similarity=(0.2, 0.3)))
    assert figures["gate_entropy_1"] > 0.9 > figures["gate_entropy_2"]
    assert figures["gates_collapsed_2"] == 2
    assert figures["experts_allowed"] == 2
    assert figures["expert_similarity_2"] == 0.3
    assert gate_warnings(None) == []
    assert gate_figures(None) == {}


def test_gates_that_choose_nothing_are_not_taken_for_specialised_ones() -> None:
    uniform, specialised = gate_figures(used(EVEN)), gate_figures(used(APART))
    assert uniform["gate_entropy_1"] == specialised["gate_entropy_1"] == 1  # all that was told once
    assert (uniform["gate_label_entropy_1"], uniform["gate_divergence_1"]) == (1, 0)
    assert specialised["gate_label_entropy_1"] < 0.1
    assert specialised["gate_divergence_1"] > 0.9
    (sentence,) = gate_warnings(used(EVEN))
    assert "weigh all experts alike (entropy 100 % of the highest possible), so labels choose nothing" in sentence
    assert gate_warnings(used(APART)) == []


def test_experts_that_are_the_same_are_named() -> None:
    assert gate_warnings(used(MIXED, similarity=(0.96,))) == []  # as they begin
    (sentence,) = gate_warnings(used(MIXED, similarity=(0.999,)))
    assert "the experts are all but the same (cosine 0.999)" in sentence


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

"""What gates do is told apart: each label its own choice, no choice, all the same choice; and how alike experts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from manylabel.config import Part
from manylabel.core.trace import Trace
from manylabel.expert import ExpertBank, ExpertUse, GateLoad, Gates, expert_similarity, gate_summaries, start_alike
from manylabel.features import Features
from manylabel.head import HEADS, HSQ

LABELS, EXPERTS = 6, 4
GATES = Gates(tuple(f"shared {j}" for j in range(EXPERTS)), tuple(range(LABELS)))


def summary(weights: torch.Tensor) -> Any:
    """weights [B, G, E] of one layer."""
    load = GateLoad(GATES, (0.5,))
    load.add([weights[:1]])
    load.add([weights[1:]])
    (found,) = gate_summaries(load.use())
    return found


def one_hot(chosen: list[int]) -> torch.Tensor:
    return torch.eye(EXPERTS)[chosen].expand(5, -1, -1)


def test_specialised_uniform_and_collapsed_gates_are_told_apart() -> None:
    specialised = summary(one_hot([0, 1, 2, 3, 0, 1]))
    uniform = summary(torch.full((5, LABELS, EXPERTS), 1 / EXPERTS))
    collapsed = summary(one_hot([2] * LABELS))
    assert [found.state for found in (specialised, uniform, collapsed)] == ["specialised", "uniform", "collapsed"]
    assert specialised.entropy > 0.95  # by the load alone the first two are the same
    assert uniform.entropy == pytest.approx(1)
    assert (specialised.label_entropy, uniform.label_entropy, collapsed.label_entropy) == pytest.approx(
        (0, 1, 0), abs=1e-6
    )
    assert specialised.divergence == pytest.approx(specialised.entropy)
    assert (uniform.divergence, collapsed.divergence) == pytest.approx((0, 0), abs=1e-6)
    assert (specialised.collapsed, uniform.collapsed, collapsed.collapsed) == (0, 0, LABELS)
    assert collapsed.entropy == pytest.approx(0, abs=1e-6)
    exact = summary(one_hot([0, 1, 2, 3, 2, 1]))
    assert exact.similarity == 0.5


def test_a_gate_that_chooses_anew_for_every_image_is_not_uniform() -> None:
    """Its mean weights are even; in each image it takes one expert."""
    turns = torch.eye(EXPERTS)[torch.arange(8) % EXPERTS][:, None].expand(-1, LABELS, -1)
    found = summary(turns)
    assert found.label_entropy == pytest.approx(0, abs=1e-6)
    assert found.state == "mixed"
    assert found.divergence == pytest.approx(0, abs=1e-6)


def test_divergence_and_entropy_against_sums() -> None:
    torch.manual_seed(0)
    weights = torch.softmax(2 * torch.randn(5, LABELS, EXPERTS), dim=-1)
    found = summary(weights)
    h = lambda a: -sum(float(x) * np.log(float(x)) for x in a)  # noqa: E731
    per_image = [h(weights[b, g]) for b in range(5) for g in range(LABELS)]
    assert found.label_entropy == pytest.approx(np.mean(per_image) / np.log(EXPERTS), abs=1e-5)
    means = weights.mean(dim=0)
    jensen_shannon = h(means.mean(dim=0)) - np.mean([h(row) for row in means])
    assert found.divergence == pytest.approx(jensen_shannon / np.log(min(LABELS, EXPERTS)), abs=1e-5)


def test_parts_are_put_together_by_their_images() -> None:
    weights = torch.softmax(torch.randn(8, LABELS, EXPERTS), dim=-1)
    whole, some, rest = GateLoad(GATES, (0.5,)), GateLoad(GATES, (0.5,)), GateLoad(GATES, (0.5,))
    for load, part in ((whole, weights), (some, weights[:3]), (rest, weights[3:])):
        load.add([part])
    together, expected = ExpertUse.together([some.use(), rest.use()]), whole.use()
    assert together is not None
    assert expected is not None
    assert np.allclose(together.entropies[0], expected.entropies[0])
    assert gate_summaries(together)[0].state == gate_summaries(expected)[0].state
    assert gate_summaries(None) == []


# --- planted in a head ------------------------------------------------------------------------------------------------


def planted(kind: str) -> str:
    """The state of an HSQ head whose gates were made so. Every label's vector has 1 at place 0."""
    torch.manual_seed(0)
    options = {"dim": 8, "heads": 2, "hidden": 8, "layer_dims": (6,), "shared_experts": 3, "dropout": 0.0}
    head: HSQ = HEADS.build(Part("hsq", options), channels={"final": 5}, num_labels=LABELS).eval()
    with torch.no_grad():
        head.transformer.norm.weight[0], head.transformer.norm.bias[0] = 0, 1
        gate = head.layers[0].gate.weight  # [L, d_i, 1, n_t + n_s]
        gate.zero_()
        for label in range(LABELS):
            if kind != "uniform":
                gate[label, 0, 0, 1 + (label % 3 if kind == "specialised" else 1)] = 40
    load, trace = GateLoad(head.gates, head.expert_similarity()), Trace(gates=[])
    head(Features({"final": torch.randn(4, 5, 2, 2)}), trace=trace)
    load.add(trace.gates or [])
    (found,) = gate_summaries(load.use())
    assert found.similarity == pytest.approx(0.8, abs=0.2)
    return str(found.state)


@pytest.mark.parametrize("kind", ["specialised", "uniform", "collapsed"])
def test_planted_gates_are_recognised(kind: str) -> None:
    assert planted(kind) == kind


# --- experts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [None, 4])
@pytest.mark.parametrize(("n_t", "n_s"), [(1, 3), (2, 2), (0, 3), (3, 0)])
def test_similarity_is_the_mean_cosine_of_a_gates_pairs(n_t: int, n_s: int, hidden: int | None) -> None:
    torch.manual_seed(0)
    shared = ExpertBank(1, n_s, 7, 5, hidden) if n_s else None
    own = ExpertBank(3, n_t, 7, 5, hidden) if n_t else None

    def vectors(bank: ExpertBank | None, owner: int) -> list[np.ndarray]:
        if bank is None:
            return []
        found = []
        for j in range(bank.count):
            parts = [bank.weight[owner, :, j].flatten()]
            if hidden:
                parts.append(bank.weight2[owner * bank.count + j].flatten())
            found.append(torch.cat(parts).detach().numpy())
        return found

    cosines = []
    for owner in range(3):
        there = [*vectors(shared, 0), *vectors(own, owner)]
        for i, a in enumerate(there):
            cosines += [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in there[i + 1 :]]
    assert expert_similarity(shared, own) == pytest.approx(np.mean(cosines), abs=1e-5)


def test_experts_that_begin_near_one_another_are_alike() -> None:
    torch.manual_seed(0)
    banks = [ExpertBank(1, 3, 128, 128), ExpertBank(4, 1, 128, 128)]
    assert expert_similarity(*banks) == pytest.approx(0, abs=0.02)
    start_alike(banks, 0.1)
    assert expert_similarity(*banks) == pytest.approx(0.96, abs=0.01)
    start_alike(banks, 0.0)
    assert expert_similarity(*banks) == pytest.approx(1)

"""Banks of experts, their loads, and how they begin."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manylabel.expert import ExpertBank, GateLoad, Gates, start_alike


@pytest.mark.parametrize("hidden", [None, 3])
def test_own_and_every_agree(hidden: int | None) -> None:
    torch.manual_seed(0)
    bank = ExpertBank(owners=4, count=2, d_in=6, d_out=5, hidden=hidden)
    x = torch.randn(7, 4, 6)
    own = bank.own(x)  # [7, 4, 2, 5]
    every = bank.every(x.flatten(0, 1)).unflatten(0, (7, 4)).unflatten(2, (4, 2))  # [7, 4, 4, 2, 5]
    for owner in range(4):
        assert torch.allclose(own[:, owner], every[:, owner, owner], atol=1e-6)


def test_experts_can_begin_alike() -> None:
    torch.manual_seed(0)
    banks = [ExpertBank(1, 3, 6, 6), ExpertBank(4, 2, 6, 6)]
    before = banks[1].weight.clone()
    start_alike(banks, 1.0)
    assert torch.equal(banks[1].weight, before)
    start_alike(banks, 0.0)
    x = torch.randn(7, 6)
    for bank in banks:
        assert torch.equal(bank.every(x), x[:, None].expand(-1, bank.owners * bank.count, -1))  # the identity
    narrow = [ExpertBank(1, 3, 6, 4), ExpertBank(4, 2, 6, 4)]
    start_alike(narrow, 0.0)
    basis = narrow[0].weight[0, :, 0].detach()
    assert torch.allclose(basis.T @ basis, torch.eye(4), atol=1e-5)
    assert torch.equal(narrow[1].weight, basis[None, :, None].expand_as(narrow[1].weight))
    perceptrons = ExpertBank(2, 2, 6, 4, hidden=3)
    weights = perceptrons.weight.clone()
    start_alike([perceptrons], 0.0)
    assert torch.equal(perceptrons.weight, weights)


def test_load_is_the_mean_weight() -> None:
    gates = Gates(("a", "b", "c", "d"), (0, 1, 2))
    load, weights = GateLoad(gates), torch.softmax(torch.randn(10, 3, 4), dim=-1)
    assert load.use() is None  # no image yet
    load.add([weights[:6]])
    load.add([weights[6:]])
    use = load.use()
    assert use is not None
    assert (use.gates, use.images) == (gates, 10)
    assert np.allclose(use.layers[0], weights.double().mean(dim=0).numpy())

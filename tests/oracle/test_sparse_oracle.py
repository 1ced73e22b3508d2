"""The sparse layer against every expert on every token: values and gradients, for every k and capacity."""

from __future__ import annotations

import copy

import literal_attention as literal
import literal_experts
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from manylabel.expert import MLPBank, Router, SparseExperts
from manylabel.expert.router import Routing

CAPACITIES = st.sampled_from([None, 0.1, 0.5, 1.0, 1.05, 2.0])


def literal_mixture(layer: SparseExperts, x: Tensor, routing: Routing, weight: Tensor) -> Tensor:
    """`layer` in float64; `weight` [T, k] with its own way back to the router."""
    experts = layer.experts
    outputs = []
    for row in x:
        if isinstance(experts, MLPBank):
            outputs.append([literal_experts.perceptron(experts, i, row) for i in range(experts.count)])
        else:
            outputs.append([f(row) for f in experts])
    expert = routing.expert.tolist()
    room = literal_experts.has_room(expert, routing.weight.tolist(), experts.count, layer.capacity, layer.prioritised)
    return torch.stack(literal_experts.mixture(outputs, expert, weight, room))


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 12),
    dim=st.integers(1, 6),
    experts=st.integers(1, 6),
    data=st.data(),
    capacity=CAPACITIES,
    prioritised=st.booleans(),
    renormalise=st.booleans(),
    modules=st.booleans(),
    static=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_layer_is_the_masked_sum_of_all_experts(
    tokens, dim, experts, data, capacity, prioritised, renormalise, modules, static, seed
) -> None:
    k = data.draw(st.integers(1, experts))
    torch.manual_seed(seed)
    router = Router(dim, experts, ["see"], noise=0.0, renormalise=renormalise)
    bank = MLPBank(experts, dim, 5)
    nn.init.normal_(bank.bias1)
    nn.init.normal_(bank.bias2)
    networks = [nn.Sequential(nn.Linear(dim, 3), nn.Tanh(), nn.Linear(3, dim)) for _ in range(experts)]
    layer = SparseExperts(networks if modules else bank, capacity, prioritised, static)
    both = nn.ModuleDict({"router": router, "layer": layer})
    x, pull = torch.randn(tokens, dim), torch.randn(tokens, dim)

    seen = x.clone().requires_grad_()
    routing = router(seen, "see", k)
    y = layer(seen, routing)
    (y * pull).sum().backward()

    exact = copy.deepcopy(both).double()
    exact.zero_grad()
    their = x.double().requires_grad_()
    probability = (their @ exact["router"].gate["see"].T).softmax(dim=-1)
    chosen = torch.tensor([literal_experts.choose(row, k) for row in probability.tolist()])
    assert torch.equal(chosen, routing.expert)
    weight = torch.stack([probability[t, row] for t, row in enumerate(chosen)])
    if renormalise:
        weight = weight / weight.sum(dim=1, keepdim=True)
    expected = literal_mixture(exact["layer"], their, routing, weight)
    assert (y - expected).abs().max() < 1e-5
    (expected * pull).sum().backward()

    assert (seen.grad - their.grad).abs().max() < 1e-5 * max(1.0, float(their.grad.abs().max()))
    for parameter in both.parameters():  # an expert of a list that nobody chose
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    literal.assert_same_gradients(both, exact)


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 40),
    experts=st.integers(1, 8),
    data=st.data(),
    capacity=st.floats(0.05, 3.0),
    prioritised=st.booleans(),
    noise=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 1000),
)
def test_who_finds_room(tokens, experts, data, capacity, prioritised, noise, seed) -> None:
    k = data.draw(st.integers(1, experts))
    torch.manual_seed(seed)
    x = torch.randn(tokens, 2).round()  # many are equal, and equal in priority where there is no noise
    routing = Router(2, experts, ["see"], noise=noise)(x, "see", k)
    fits = SparseExperts(MLPBank(experts, 2, 3), capacity, prioritised).fits(routing)
    expert, weight = routing.expert.tolist(), routing.weight.tolist()
    assert fits is not None
    assert fits.tolist() == literal_experts.has_room(expert, weight, experts, capacity, prioritised)

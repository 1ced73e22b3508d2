"""Importance, load and z-loss against loops over tokens and experts: values and gradients."""

from __future__ import annotations

import math

import literal_experts
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.expert import Router, importance_loss, load_loss, z_loss
from manylabel.expert.router import Routing


def routed(tokens: int, experts: int, k: int, noise: float, seed: int) -> Routing:
    torch.manual_seed(seed)
    routing: Routing = Router(5, experts, ["see"], noise=noise)(torch.randn(tokens, 5), "see", k)
    return routing


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 12),
    experts=st.integers(1, 7),
    data=st.data(),
    noise=st.sampled_from([0.5, 1.0, 3.0]),
    seed=st.integers(0, 1000),
)
def test_the_losses_are_v_moes(tokens, experts, data, noise, seed) -> None:
    k = data.draw(st.integers(1, experts))
    routing = routed(tokens, experts, k, noise, seed)
    assert routing.noise == noise / experts
    exact = routing.logits.detach().double().requires_grad_()
    expected = literal_experts.importance(exact)
    found = importance_loss(routing)
    assert (found - expected).abs() < 1e-5
    (gradient,) = torch.autograd.grad(found, routing.logits, retain_graph=True)
    (literal,) = torch.autograd.grad(expected, exact)
    assert (gradient - literal).abs().max() < 1e-5

    expected_load = literal_experts.load(routing.logits.tolist(), routing.noisy.tolist(), routing.noise, k)
    assert (load_loss(routing) - expected_load).abs() < 1e-5 * max(1.0, expected_load)
    expected_z = sum(math.log(sum(math.exp(v) for v in row)) ** 2 for row in routing.logits.tolist()) / tokens
    assert (z_loss(routing) - expected_z).abs() < 1e-5 * max(1.0, expected_z)


@settings(max_examples=25, deadline=None)
@given(tokens=st.integers(1, 4), experts=st.integers(2, 5), data=st.data(), seed=st.integers(0, 1000))
def test_the_load_pulls_as_the_literal_one_changes(tokens, experts, data, seed) -> None:
    """Its gradient to every clean logit, the noise held, against differences of the literal loss."""
    k = data.draw(st.integers(1, experts))
    routing = routed(tokens, experts, k, 1.0, seed)
    clean, epsilon = routing.logits.detach().double(), (routing.noisy - routing.logits).detach().double()
    leaf = clean.clone().requires_grad_()
    own = Routing(routing.expert, routing.weight, leaf.softmax(dim=-1), leaf, leaf + epsilon, routing.noise)
    (gradient,) = torch.autograd.grad(load_loss(own), leaf)
    step = 1e-6
    for t in range(tokens):
        for i in range(experts):
            near = []
            for sign in (1, -1):
                moved = clean.clone()
                moved[t, i] += sign * step
                near.append(literal_experts.load(moved.tolist(), (moved + epsilon).tolist(), routing.noise, k))
            slope = (near[0] - near[1]) / (2 * step)
            assert abs(slope - float(gradient[t, i])) < 1e-5 * max(1.0, abs(slope))

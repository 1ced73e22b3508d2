"""The balance losses at their ends: even and one-sided use, no noise, no tokens, huge logits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from manylabel.expert import Router, Routing, importance_loss, load_loss, z_loss


def routing_of(logits: Tensor, k: int, sigma: float = 0.0) -> Routing:
    noisy = logits + sigma * torch.randn_like(logits)
    weight, expert = noisy.softmax(dim=-1).topk(k)
    return Routing(expert, weight, logits.softmax(dim=-1), logits, noisy, sigma)


@pytest.mark.parametrize("sigma", [0.0, 0.25])
def test_even_use_costs_nothing_and_one_sided_use_the_most(sigma: float) -> None:
    torch.manual_seed(0)
    even = 50 * torch.eye(4).repeat(1000, 1)  # every expert is the choice of as many tokens
    alone = torch.tensor([50.0, 0, 0, 0]).repeat(4000, 1)
    for loss in (importance_loss, load_loss):
        assert float(loss(routing_of(even, 1, sigma))) == pytest.approx(0.0, abs=1e-3)
        assert float(loss(routing_of(alone, 1, sigma))) == pytest.approx(3.0, rel=1e-4)  # E − 1


def test_the_z_loss_of_equal_logits() -> None:
    assert float(z_loss(routing_of(torch.zeros(7, 4), 1))) == pytest.approx(math.log(4) ** 2)


def test_the_losses_teach_the_router_balance() -> None:
    torch.manual_seed(0)
    router, x = Router(8, 4, ["see"]), torch.randn(200, 8) + 1
    with torch.no_grad():
        router.gate["see"][0] += 0.5  # a favourite
    losses = []
    for _ in range(20):
        routing = router(x, "see", 1)
        loss = importance_loss(routing) + load_loss(routing)
        losses.append(float(loss.detach()))
        (gradient,) = torch.autograd.grad(loss, router.gate["see"])
        router.gate["see"].data -= 0.1 * gradient
    assert losses[0] > 1
    assert losses[-1] < 0.1


@pytest.mark.parametrize("tokens", [0, 1, 9])
@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("sigma", [0.0, 1e-6, 0.25])
@pytest.mark.parametrize("scale", [0.0, 1.0, 80.0])
def test_finite_always(tokens: int, k: int, sigma: float, scale: float) -> None:
    torch.manual_seed(0)
    logits = (scale * torch.randn(tokens, 4)).requires_grad_()
    routing = routing_of(logits, k, sigma)
    total = importance_loss(routing) + load_loss(routing) + z_loss(routing)
    (gradient,) = torch.autograd.grad(total, logits)
    assert total.isfinite()
    assert gradient.isfinite().all()
    assert tokens or float(total.detach()) == 0

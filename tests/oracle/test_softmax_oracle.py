"""Losses of one label per image against torch's cross entropy and against loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from manylabel.config import Part
from manylabel.loss import LOSSES

B, N = 7, 5


def case() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(1)
    return 2 * torch.randn(B, N, generator=g), torch.randint(N, (B,), generator=g), torch.ones(B, N, dtype=torch.bool)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_cross_entropy_is_torchs(smoothing: float, reduction: str) -> None:
    x, label, known = case()
    ours = LOSSES.build(Part("cross_entropy", {"label_smoothing": smoothing, "reduction": reduction}))
    theirs = torch.nn.functional.cross_entropy(x, label, label_smoothing=smoothing, reduction=reduction)
    torch.testing.assert_close(ours(x, torch.nn.functional.one_hot(label, N).float(), known), theirs)


def test_soft_targets_are_torchs_too() -> None:
    x, _, known = case()
    y = torch.softmax(torch.randn(B, N), dim=1)
    theirs = torch.nn.functional.cross_entropy(x, y)
    torch.testing.assert_close(LOSSES.build("cross_entropy")(x, y, known), theirs)


@pytest.mark.parametrize(
    "options", [{}, {"gamma_negative": 2.0, "gamma_positive": 1.0, "label_smoothing": 0.2}, {"label_smoothing": 0.0}]
)
def test_single_label_asl_is_its_formula(options: dict[str, Any]) -> None:
    x, label, known = case()
    x = x.double().requires_grad_()
    eps, gamma_neg = options.get("label_smoothing", 0.1), options.get("gamma_negative", 4.0)
    gamma_pos = options.get("gamma_positive", 0.0)
    total = torch.zeros((), dtype=torch.float64)
    for b in range(B):
        p = [torch.exp(x[b, n]) / sum(torch.exp(x[b, m]) for m in range(N)) for n in range(N)]
        for n in range(N):
            y = 1.0 if n == label[b] else 0.0
            weight = (1 - p[n]) ** gamma_pos if y else p[n] ** gamma_neg
            total = total - (y * (1 - eps) + eps / N) * weight * torch.log(p[n])
    (expected,) = torch.autograd.grad(total / B, x)
    mine = x.detach().float().requires_grad_()
    value = LOSSES.build(Part("asl_single", options))(mine, torch.nn.functional.one_hot(label, N).float(), known)
    assert abs(value.item() - total.item() / B) < 1e-5
    (grad,) = torch.autograd.grad(value, mine)
    assert (grad - expected).abs().max() < 1e-5


def test_class_weights_follow_the_counts() -> None:
    x, label, known = case()
    counts = {"positive_counts": torch.tensor([10, 20, 30, 20, 20]), "known_counts": torch.full((N,), 100)}
    ours = LOSSES.build(Part("cross_entropy", {"class_weight": "balanced"}), **counts)
    weight = torch.tensor([2.0, 1.0, 2 / 3, 1.0, 1.0])  # mean count 20
    each = torch.nn.functional.cross_entropy(x, label, reduction="none") * weight[label]
    torch.testing.assert_close(ours(x, torch.nn.functional.one_hot(label, N).float(), known), each.mean())

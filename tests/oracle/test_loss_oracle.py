"""Losses against slow, literal ones: a loop over images and labels in float64, as the formulas are written."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from literal_loss import LITERAL
from torch import Tensor, nn
from torchvision.ops import sigmoid_focal_loss

from manylabel.config import Part
from manylabel.loss import LOSSES

B, N = 5, 4
NAMES = [name for name in LOSSES.names() if LOSSES.get(name).activation == "sigmoid"]  # the others: test_softmax_oracle
POSITIVES, KNOWNS = [3, 40, 0, 70], [90, 80, 50, 100]  # prevalence 0.03, 0.5, 0, 0.7; balanced 29 → 20, 1, 20, 0.43


def literal(name: str, o: dict[str, Any], x: Tensor, y: Tensor, known: Tensor) -> Tensor:
    """The loss of a batch, entry by entry."""
    mode, eps = o.get("unknown", "ignore"), o.get("label_smoothing", 0.0)
    unknown = sorted((-x[b, n].item(), b, n) for b in range(B) for n in range(N) if not known[b, n])
    top_k = {(b, n) for _, b, n in unknown[: o.get("selective_top_k", 5)]}
    total, entries, images = torch.zeros((), dtype=torch.float64), 0, set()
    for b in range(B):
        for n in range(N):
            if not known[b, n] and mode == "ignore":
                continue
            frequent = POSITIVES[n] / KNOWNS[n] > o.get("selective_prior", 0.5)
            if not known[b, n] and mode == "selective" and (frequent or (b, n) in top_k):
                continue
            target = y[b, n] if known[b, n] else torch.zeros((), dtype=torch.float64)
            target = target * (1 - eps) + eps / 2
            ratio = (KNOWNS[n] - POSITIVES[n]) / POSITIVES[n] if POSITIVES[n] else float("inf")
            w = {"none": 1.0, "balanced": min(ratio, 20), "sqrt": min(ratio**0.5, 20)}[o.get("positive_weight", "none")]
            cost = LITERAL[name].cost(x[b, n], target, w, None if known[b, n] else o.get("unknown_gamma"), o)
            total = total + (cost if known[b, n] else o.get("unknown_weight", 1.0) * cost)
            entries += 1
            images.add(b)
    return total / {"mean": entries, "sum_labels": len(images), "sum": 1}[o.get("reduction", "mean")]


SHARED: list[dict[str, Any]] = [
    {},
    {"reduction": "sum"},
    {"reduction": "sum_labels", "label_smoothing": 0.1},
    {"positive_weight": "balanced"},
    {"positive_weight": "sqrt", "unknown": "negative", "unknown_weight": 0.4, "label_smoothing": 0.05},
    {"unknown": "negative", "unknown_gamma": 2.5, "reduction": "sum"},
    {"unknown": "selective", "selective_top_k": 3, "unknown_gamma": 1.0, "unknown_weight": 0.7},
    {"unknown": "selective", "selective_prior": 0.02, "reduction": "sum_labels"},
]
CASES = [(name, options) for name in NAMES if name in LITERAL for options in (*SHARED, *LITERAL[name].VARIANTS)]


def batch(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Float32 numbers, so that both sides start from the same ones; half of the targets are soft."""
    g = torch.Generator().manual_seed(seed)
    x, y = 3 * torch.randn(B, N, generator=g), torch.rand(B, N, generator=g)
    y = torch.where(torch.rand(B, N, generator=g) < 0.5, y.round(), y)
    return x, y, torch.rand(B, N, generator=g) < 0.6


def test_every_loss_has_an_oracle() -> None:
    assert set(LITERAL) == set(NAMES)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_value_and_gradient_equal_the_literal_loss(name: str, options: dict[str, Any], seed: int) -> None:
    x, y, known = batch(seed)
    fast_x, slow_x = x.clone().requires_grad_(), x.double().requires_grad_()
    counts = {"positive_counts": torch.tensor(POSITIVES), "known_counts": torch.tensor(KNOWNS)}
    fast = LOSSES.build(Part(name, options), **counts)(fast_x, y, known)
    slow = literal(name, options, slow_x, y.double(), known)
    (fast_grad,), (slow_grad,) = torch.autograd.grad(fast, fast_x), torch.autograd.grad(slow, slow_x)
    torch.testing.assert_close(fast.double(), slow, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(fast_grad.double(), slow_grad, rtol=1e-6, atol=1e-6)


class TestAgainstTorch:
    everything = torch.ones(B, N, dtype=torch.bool)

    @pytest.mark.parametrize("reduction", ["mean", "sum"])
    def test_bce(self, reduction: str) -> None:
        x, y, _ = batch(7)
        ours = LOSSES.build(Part("bce", {"reduction": reduction}))(x, y, self.everything)
        torch.testing.assert_close(ours, nn.BCEWithLogitsLoss(reduction=reduction)(x, y), rtol=1e-6, atol=1e-6)

    def test_bce_with_positive_weights(self) -> None:
        x, y, _ = batch(8)
        weights = torch.tensor([20.0, 1.0, 20.0, 30 / 70])
        counts = {"positive_counts": torch.tensor(POSITIVES), "known_counts": torch.tensor(KNOWNS)}
        ours = LOSSES.build(Part("bce", {"positive_weight": "balanced"}), **counts)(x, y, self.everything)
        torch.testing.assert_close(ours, nn.BCEWithLogitsLoss(pos_weight=weights)(x, y), rtol=1e-6, atol=1e-6)

    def test_soft_margin(self) -> None:
        x, y, _ = batch(9)
        ours = LOSSES.build("soft_margin")(x, y, self.everything)
        torch.testing.assert_close(ours, nn.MultiLabelSoftMarginLoss()(x, y), rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("alpha", [None, 0.25])
    def test_focal(self, alpha: float | None) -> None:
        """Hard targets only: torchvision mixes probabilities where ours mixes costs."""
        x, y, _ = batch(10)
        y = y.round()
        ours = LOSSES.build(Part("focal", {"alpha": alpha}))(x, y, self.everything)
        theirs = sigmoid_focal_loss(x, y, alpha=-1 if alpha is None else alpha, gamma=2, reduction="mean")
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)

    def test_asl_without_focus_and_margin_is_bce(self) -> None:
        x, y, known = batch(11)
        options = {"gamma_negative": 0.0, "gamma_positive": 0.0, "clip": 0.0}
        asl_value = LOSSES.build(Part("asl", options))(x, y, known)
        torch.testing.assert_close(asl_value, LOSSES.build("bce")(x, y, known), rtol=1e-6, atol=1e-6)

    def test_focal_and_asl_meet(self) -> None:
        """ASL with one γ, no margin and gradients through its weights is the focal loss."""
        x, y, known = batch(12)
        options = {"gamma_negative": 2.0, "gamma_positive": 2.0, "clip": 0.0, "detach_focus": False}
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        asl_value = LOSSES.build(Part("asl", options))(a, y, known)
        focal_value = LOSSES.build("focal")(b, y, known)
        torch.testing.assert_close(asl_value, focal_value, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(
            torch.autograd.grad(asl_value, a), torch.autograd.grad(focal_value, b), rtol=1e-6, atol=1e-6
        )

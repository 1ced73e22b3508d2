"""What every loss of one label per image must hold."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch
from test_loss_contract import value_and_grad
from torch import Tensor

from manylabel.config import Part
from manylabel.loss import LOSSES

B, N = 6, 5
NAMES = [name for name in LOSSES.names() if LOSSES.get(name).activation == "softmax"]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"reduction": "sum"},
    {"label_smoothing": 0.1},
    {"class_weight": "balanced"},
    {"class_weight": "sqrt"},
]
CASES = [(name, options) for name in NAMES for options in VARIANTS] + [
    ("asl_single", {"gamma_positive": 1.0, "gamma_negative": 0.5}),
    ("asl_single", {"detach_focus": True, "label_smoothing": 0.0}),
]


def build(name: str, options: dict[str, Any]) -> Any:
    counts = {"positive_counts": torch.tensor([1, 5, 8, 0, 10]), "known_counts": torch.full((N,), 24)}
    return LOSSES.build(Part(name, options), **counts)


def batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """One label per image; of the first image nothing is known; the last two are mixed."""
    g = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(B, N, generator=g)
    y = torch.nn.functional.one_hot(torch.randint(N, (B,), generator=g), N).float()
    y[-2:] = 0.3 * y[-2:] + 0.7 * y[-2:].flip(0)
    known = torch.ones(B, N, dtype=torch.bool)
    known[0] = False
    return x, y, known


def test_there_are_two() -> None:
    assert set(NAMES) == {"cross_entropy", "asl_single"}
    for name in NAMES:
        assert all(f.metadata["help"] for f in fields(LOSSES.get(name).Options))


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
class TestEvery:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
    def test_finite_float32_whatever_the_logits(self, name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
        _, y, known = batch()
        for extreme in (80.0, -80.0, 1000.0):
            x = torch.zeros(B, N, dtype=dtype)
            x[:, 1] = extreme
            value, grad = value_and_grad(build(name, options), x, y, known)
            assert value.dtype == torch.float32
            assert grad.dtype == dtype
            assert torch.isfinite(value)
            assert torch.isfinite(grad).all()

    def test_unknown_entries_change_nothing(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch()
        known[2, (y[2].argmax() + 1) % N] = False  # no candidate for this image
        value, grad = value_and_grad(build(name, options), x, y, known)
        assert value > 0
        assert not grad[~known].any()
        for poison in (80.0, float("nan"), float("inf")):
            x2, y2 = torch.where(known, x, poison), torch.where(known, y, -poison)
            value2, grad2 = value_and_grad(build(name, options), x2, y2, known)
            assert torch.equal(value, value2)
            assert torch.equal(grad, grad2)

    def test_images_without_a_label_do_not_dilute(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch()
        loss = build(name, options)
        torch.testing.assert_close(loss(x, y, known), loss(x[1:], y[1:], known[1:]))
        nothing = torch.zeros(B, N, dtype=torch.bool)
        value, grad = value_and_grad(loss, x, y, nothing)
        assert value == 0
        assert not grad.any()

    def test_descent_finds_the_label(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch()
        x, y, known = x[1:-2], y[1:-2], known[1:-2]
        if options.get("class_weight"):
            y = torch.nn.functional.one_hot(torch.tensor([1, 2, 4]), N).float()
        x = x.clone().requires_grad_()
        loss, optimiser = build(name, options), torch.optim.Adam([x], lr=0.3)
        for _ in range(60):
            optimiser.zero_grad()
            loss(x, y, known).backward()
            optimiser.step()
        assert x.argmax(dim=1).tolist() == y.argmax(dim=1).tolist()


@pytest.mark.parametrize("wrong", [0, 1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_shapes_must_agree(name: str, wrong: int) -> None:
    parts = list(batch())
    parts[wrong] = parts[wrong][:, :1]
    with pytest.raises(ValueError, match="one shape"):
        build(name, {})(*parts)

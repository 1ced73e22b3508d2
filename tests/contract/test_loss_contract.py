"""What every registered loss must hold, with its default options and with each shared one."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from manylabel.config import Part
from manylabel.loss import LOSSES, Loss

B, N = 6, 5
DTYPES = [torch.float16, torch.bfloat16, torch.float32]
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sum_labels": {"reduction": "sum_labels"},
    "sum": {"reduction": "sum"},
    "smooth": {"label_smoothing": 0.1},
    "balanced": {"positive_weight": "balanced"},
    "negative": {"unknown": "negative", "unknown_weight": 0.3, "unknown_gamma": 0.5},
    "selective": {"unknown": "selective", "unknown_gamma": 3.0, "selective_top_k": 2},
}
OWN: list[tuple[str, dict[str, Any]]] = [  # settings of single losses under which a careless formula breaks
    ("asl", {"clip": 0.0}),
    ("asl", {"detach_focus": False}),
    ("asl", {"detach_focus": False, "gamma_negative": 0.5, "gamma_positive": 0.5}),
    ("asl", {"detach_focus": False, "gamma_negative": 0.5, "clip": 0.0}),
    ("asl", {"gamma_negative": 0.0}),
    ("asl", {"clip": 1e-45, "gamma_positive": 3.0}),
    ("focal", {"gamma": 0.5, "alpha": 0.25}),
    ("focal", {"gamma": 0.0}),
]
NAMES = [
    name for name in LOSSES.names() if LOSSES.get(name).activation == "sigmoid"
]  # the others: test_softmax_contract
CASES = [(name, options) for name in NAMES for options in VARIANTS.values()] + OWN
IGNORING = [(name, options) for name, options in CASES if options.get("unknown", "ignore") == "ignore"]


def build(name: str, options: dict[str, Any]) -> Loss:
    counts = {"positive_counts": torch.tensor([1, 5, 8, 0, 10]), "known_counts": torch.full((N,), 10)}
    return LOSSES.build(Part(name, options), **counts)


def batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(B, N, generator=g)
    y = torch.rand(B, N, generator=g)
    y = torch.where(torch.rand(B, N, generator=g) < 0.6, y.round(), y)  # hard and soft ones
    known = torch.rand(B, N, generator=g) < 0.7
    known[0] = False  # an image of which nothing is known
    known[1] = True
    return x, y, known


def value_and_grad(loss: Loss, x: Tensor, y: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    value = loss(x, y, known)
    (grad,) = torch.autograd.grad(value, x)
    return value.detach(), grad


def test_registry_holds_the_losses_we_promise() -> None:
    assert {"bce", "focal", "asl", "soft_margin", "cross_entropy", "asl_single"} <= set(LOSSES.names())


@pytest.mark.parametrize("name", LOSSES.names())
def test_every_option_is_documented_and_resolves_to_itself(name: str) -> None:
    options = LOSSES.get(name).Options
    assert all(f.metadata["help"] for f in fields(options))
    assert LOSSES.options(LOSSES.resolve(name)) == options()
    assert len(LOSSES.summary()[name]) > 10


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
class TestEveryPrecision:
    def test_scalar_float32_with_a_gradient_of_the_logits_dtype(
        self, name: str, options: dict[str, Any], dtype: torch.dtype
    ) -> None:
        x, y, known = batch()
        value, grad = value_and_grad(build(name, options), x.to(dtype), y, known)
        assert value.shape == ()
        assert value.dtype == torch.float32
        assert grad.dtype == dtype
        exact, _ = value_and_grad(build(name, options), x.to(dtype).float(), y, known)
        assert torch.equal(value, exact)  # half precision is lost in the logits, never in the formula

    def test_extreme_logits_stay_finite(self, name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
        """MT3: ±80 for present, absent and soft targets; at ±1000 the probability itself is 0 or 1 in float32."""
        y = torch.tensor([0.0, 1.0, 0.5, 0.0, 1.0]).expand(B, N)
        everything = torch.ones(B, N, dtype=torch.bool)
        for extreme, known in product((80.0, -80.0, 1000.0, -1000.0), (everything, batch()[2])):
            x = torch.full((B, N), extreme, dtype=dtype)
            value, grad = value_and_grad(build(name, options), x, y, known)
            assert torch.isfinite(value)
            assert torch.isfinite(grad).all()
            assert value >= 0

    def test_extreme_mistakes_still_teach(self, name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
        """At ±80 on the wrong side the gradient is neither lost nor reversed. (ASL's margin flattens absent ones.)"""
        known = torch.ones(B, N, dtype=torch.bool)
        _, grad = value_and_grad(build(name, options), torch.full((B, N), -80.0, dtype=dtype), known.float(), known)
        assert (grad < 0).all()


@pytest.mark.parametrize(("name", "options"), IGNORING, ids=str)
class TestUnknown:
    def test_unknown_entries_change_nothing(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch()
        value, grad = value_and_grad(build(name, options), x, y, known)
        assert value > 0
        assert not grad[~known].any()
        for poison in (80.0, -80.0, float("nan"), float("inf"), float("-inf")):
            x2, y2 = torch.where(known, x, poison), torch.where(known, y, -poison)
            value2, grad2 = value_and_grad(build(name, options), x2, y2, known)
            assert torch.equal(value, value2)
            assert torch.equal(grad, grad2)

    def test_a_batch_of_unknowns_is_zero(self, name: str, options: dict[str, Any]) -> None:
        """MT3: exactly 0, with a gradient of zeros."""
        nothing = torch.zeros(B, N, dtype=torch.bool)
        for filler in (0.0, 80.0, float("nan")):
            x = torch.full((B, N), filler)
            value, grad = value_and_grad(build(name, options), x, torch.full((B, N), -1.0), nothing)
            assert value.item() == 0
            assert torch.equal(grad, torch.zeros(B, N))

    def test_unknown_images_and_labels_do_not_dilute(self, name: str, options: dict[str, Any]) -> None:
        """The loss of a batch equals that of the same batch without the image nobody annotated."""
        x, y, known = batch()
        loss = build(name, options)
        torch.testing.assert_close(loss(x, y, known), loss(x[1:], y[1:], known[1:]))

    def test_an_empty_batch_is_zero(self, name: str, options: dict[str, Any]) -> None:
        empty = torch.zeros(0, N)
        assert build(name, options)(empty, empty, empty.bool()).item() == 0


@pytest.mark.parametrize(("name", "options"), IGNORING, ids=str)
class TestShape:
    def test_soft_targets_mix_the_two_costs(self, name: str, options: dict[str, Any]) -> None:
        """loss(y) = y·loss(1) + (1−y)·loss(0): what MixUp means by a target of 0.3."""
        x, _, known = batch()
        loss = build(name, options)
        at = {y: loss(x, torch.full_like(x, y), known) for y in (0.0, 0.3, 1.0)}
        torch.testing.assert_close(at[0.3], 0.3 * at[1.0] + 0.7 * at[0.0])

    def test_scale_does_not_depend_on_the_batch_size(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch()
        loss = build(name, options)
        once, thrice = loss(x, y, known), loss(x.repeat(3, 1), y.repeat(3, 1), known.repeat(3, 1))
        torch.testing.assert_close(thrice, 3 * once if options.get("reduction") == "sum" else once)

    def test_images_come_in_any_order(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch()
        loss, order = build(name, options), torch.randperm(B, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(loss(x[order], y[order], known[order]), loss(x, y, known))

    def test_descent_finds_the_labels(self, name: str, options: dict[str, Any]) -> None:
        x, y, known = batch(seed=3)
        y, x = y.round(), x.clone().requires_grad_()
        loss, optimiser = build(name, options), torch.optim.Adam([x], lr=0.3)
        first = loss(x, y, known).item()
        for _ in range(60):
            optimiser.zero_grad()
            loss(x, y, known).backward()
            optimiser.step()
        assert loss(x, y, known).item() < first
        present, absent = x[known & (y > 0.5)], x[known & (y < 0.5)]
        assert present.min() > absent.max()  # a threshold of 0 would be too much: smoothed ASL settles above it


@pytest.mark.parametrize("name", NAMES)
class TestManners:
    def test_grad_mode_is_left_as_it_was(self, name: str) -> None:
        loss = build(name, {})
        loss(*batch())
        assert torch.is_grad_enabled()
        with torch.no_grad():
            loss(*batch())
            assert not torch.is_grad_enabled()

    def test_inputs_are_left_as_they_were(self, name: str) -> None:
        given, kept = batch(), batch()
        build(name, VARIANTS["negative"])(*given)
        assert all(torch.equal(a, b) for a, b in zip(given, kept, strict=True))

    def test_autocast_does_not_reach_inside(self, name: str) -> None:
        loss, (x, y, known) = build(name, VARIANTS["balanced"]), batch()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = loss(x, y, known)
        assert torch.equal(inside, loss(x, y, known))

    def test_a_module_cast_to_half_computes_in_float(self, name: str) -> None:
        x, y, known = batch()
        value = build(name, VARIANTS["balanced"]).half()(x.half(), y.half(), known)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, build(name, VARIANTS["balanced"])(x, y, known), rtol=1e-2, atol=1e-2)

    @pytest.mark.parametrize("wrong", [0, 1, 2])
    def test_shapes_must_agree(self, name: str, wrong: int) -> None:
        parts = list(batch())
        parts[wrong] = parts[wrong][:, :1]  # would broadcast
        with pytest.raises(ValueError, match="one shape"):
            build(name, {})(*parts)

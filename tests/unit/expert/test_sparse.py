"""Sparse experts: only what was chosen is computed; forms, precisions and borders give the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from manylabel.engine.export import quiet_export
from manylabel.error import ConfigError
from manylabel.expert import MLPBank, Router, SparseExperts
from manylabel.expert.grouped import grouped_linear

D, E = 6, 4


class Counting(nn.Module):
    """Linear, and how many rows it saw in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.seen = nn.Linear(D, D), list[int]()

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(len(x))
        out: Tensor = self.linear(x)
        return out


class Block(nn.Module):
    """x + Σ R(x)_i f_i(x), as a transformer has it."""

    def __init__(self, k: int = 2, modules: bool = False, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.k, self.router = k, Router(D, E, ["see"])
        networks = [nn.Sequential(nn.Linear(D, 5), nn.Tanh(), nn.Linear(5, D)) for _ in range(E)]
        self.layer = SparseExperts(networks if modules else MLPBank(E, D, 8), **options)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layer(x, self.router(x, "see", self.k))
        return y


VARIANTS: list[dict[str, Any]] = [
    {},
    {"modules": True, "k": 1},
    {"capacity": 1.05},
    {"capacity": 0.5, "prioritised": True, "k": 3},
]


def test_an_expert_is_called_once_with_its_tokens() -> None:
    torch.manual_seed(0)
    experts = [Counting() for _ in range(E)]
    layer, router, x = SparseExperts(experts), Router(D, E, ["see"]), torch.randn(3, 7, D)
    for k in (1, 3, 2):  # nothing is rebuilt
        routing = router(x, "see", k)
        assert layer(x, routing).shape == x.shape
        seen = [expert.seen.pop() for expert in experts]
        assert seen == routing.expert.flatten().bincount(minlength=E).tolist()
        assert sum(seen) == 21 * k
        assert not any(expert.seen for expert in experts)


@pytest.mark.parametrize("modules", [False, True])
def test_experts_that_nobody_chose(modules: bool) -> None:
    block = Block(k=1, modules=modules)
    x = torch.ones(2, 3, D)
    with torch.no_grad():
        block.router.gate["see"].copy_(torch.eye(E)[:, :1].expand(E, D))  # all choose the first
    block(x).square().sum().backward()
    if modules:
        assert all(p.grad is None for expert in block.layer.experts[1:] for p in expert.parameters())
        assert all(p.grad.abs().sum() > 0 for p in block.layer.experts[0].parameters())
    else:
        assert all(p.grad[0].abs().sum() > 0 and not p.grad[1:].any() for p in block.layer.experts.parameters())


@pytest.mark.parametrize("options", [*VARIANTS, {"static": True}], ids=str)
def test_no_tokens(options: dict[str, Any]) -> None:
    block = Block(**options)
    x = torch.randn(0, 3, D, requires_grad=True)
    y = block(x)
    assert y.shape == x.shape
    y.sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in block.parameters())


def test_tokens_without_room_pass_by() -> None:
    torch.manual_seed(0)
    layer, router = SparseExperts(MLPBank(E, D, 8), capacity=1.0), Router(D, E, ["see"]).eval()
    strength = torch.tensor([1.0, 1, 3, 1, 1, 1, 2, 1])
    x = strength[:, None] * torch.randn(D)  # all choose the same expert, the stronger with the higher weight
    routing = router(x, "see", 1)
    assert (layer(x, routing).abs().sum(dim=1) > 0).tolist() == [True, True] + [False] * 6  # ⌈1·8·1/4⌉ = 2
    layer.prioritised = True
    assert (layer(x, routing).abs().sum(dim=1) > 0).nonzero().flatten().tolist() == [2, 6]
    layer.eval()
    whole = layer(x, routing)
    assert (whole.abs().sum(dim=1) > 0).all()  # judged or used, every token is served, …
    alone = torch.cat([layer(x[i : i + 1], router(x[i : i + 1], "see", 1)) for i in range(8)])
    torch.testing.assert_close(whole, alone)  # … whatever else is in the batch


# --- other forms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_onnx_gives_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    block, path = Block(**options).eval(), tmp_path / "block.onnx"
    with quiet_export():
        torch.onnx.export(
            block,
            (torch.randn(3, 7, D),),
            str(path),
            input_names=["x"],
            dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
            dynamo=True,
            external_data=False,
        )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for batch in (1, 5):
        x = torch.randn(batch, 7, D)
        (found,) = session.run(None, {"x": x.numpy()})
        assert np.abs(found - block(x).detach().numpy()).max() < 1e-5


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_the_static_form_is_one_graph(options: dict[str, Any]) -> None:
    block, x = Block(**options).eval(), torch.randn(3, 7, D)
    sparse = block(x)
    block.layer.static = True
    compiled = torch.compile(block, fullgraph=True, backend="eager")
    assert (compiled(x) - sparse).abs().max() < 1e-6


def test_evaluation_repeats_itself() -> None:
    block, x = Block(k=4).eval(), torch.randn(50, 9, D)
    assert torch.equal(block(x), block(x))
    assert torch.equal(block(x.flatten(0, 1)), block(x).flatten(0, 1))
    block.train()
    assert not torch.equal(block(x), block(x))  # noise


@pytest.mark.parametrize("options", [*VARIANTS, {"static": True}], ids=str)
def test_mixed_precision(options: dict[str, Any]) -> None:
    block, x = Block(**options).eval(), torch.randn(3, 7, D)
    routing = block.router(x, "see", block.k)
    exact = block.layer(x, routing)
    with torch.autocast("cpu", torch.bfloat16):
        y = block.layer(x, routing)
    assert y.dtype == torch.bfloat16  # as a linear layer's output
    assert (y - exact).abs().max() < 0.02 * exact.abs().max()
    y.float().square().sum().backward()
    for parameter in block.parameters():
        assert parameter.grad is None or (
            parameter.grad.dtype == torch.float32 and bool(parameter.grad.isfinite().all())
        )
    whole = block.bfloat16()(x.bfloat16())
    assert whole.dtype == torch.bfloat16


# --- parts ---------------------------------------------------------------------------------------------------------------


def test_the_grouped_product_has_the_right_slopes() -> None:
    torch.manual_seed(0)
    x, w, b = (torch.randn(*shape, dtype=torch.float64) for shape in ((5, 3), (3, 3, 2), (3, 2)))
    counts = [2, 0, 3]
    every = [t.requires_grad_() for t in (x, w, b)]
    assert torch.autograd.gradcheck(lambda *inputs: grouped_linear(*inputs, counts), every)
    w.requires_grad_(False)
    grouped_linear(x, w, b, counts).sum().backward()  # frozen weights
    assert x.grad is not None
    assert w.grad is None


@pytest.mark.parametrize("counts", [[3] * 40, [0] * 39 + [120], [120] + [0] * 39, list(range(40)), [0] * 40])
def test_many_experts_are_shared_out_over_the_cores(counts: list[int]) -> None:
    """The same numbers as expert by expert, however rows are spread, and every other product keeps all its cores."""
    torch.manual_seed(0)
    x = torch.randn(sum(counts), 6, requires_grad=True)
    w, b = torch.randn(40, 6, 5, requires_grad=True), torch.randn(40, 5, requires_grad=True)
    cores = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            y = grouped_linear(x, w, b, counts)
            found.append((y, *torch.autograd.grad(y.square().sum(), (x, w, b))))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(cores)
    literal = [rows @ w[i] + b[i] for i, rows in enumerate(x.split(counts))]
    torch.testing.assert_close(found[1][0], torch.cat(literal))
    for one, three in zip(*found, strict=True):
        torch.testing.assert_close(one, three)


def test_many_experts_in_a_thread_that_is_watched() -> None:
    """Inference mode and counters of operations belong to a thread, so the work stays in it."""
    cores = torch.get_num_threads()
    x, w, b = torch.randn(80, 6), torch.randn(40, 6, 5), torch.randn(40, 5)
    try:
        torch.set_num_threads(2)
        plain = grouped_linear(x, w, b, [2] * 40)
        with torch.inference_mode():
            torch.testing.assert_close(grouped_linear(x, w, b, [2] * 40), plain)
        with FlopCounterMode(display=False) as counter:
            grouped_linear(x, w, b, [2] * 40)
        assert counter.get_total_flops() == 2 * 80 * 6 * 5
        with ThreadPoolExecutor(1) as later:  # threads that begin now have all cores
            assert later.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(cores)


def test_experts_begin_as_a_dense_mlp() -> None:
    torch.manual_seed(0)
    first, second, bank = nn.Linear(D, 8), nn.Linear(8, D), MLPBank(E, D, 8)
    mlp = nn.Sequential(first, nn.GELU(), second)
    bank.copy_mlp(first, second)
    x = torch.randn(9, D)
    router = Router(D, E, ["see"], renormalise=True)
    for k in (1, 3):
        assert (SparseExperts(bank)(x, router(x, "see", k)) - mlp(x)).abs().max() < 1e-6
    bank.copy_mlp(first, second, noise=0.1)
    apart = (bank.weight1 - first.weight.T).std() / first.weight.std()
    assert float(apart.detach()) == pytest.approx(0.1, rel=0.2)
    assert not torch.equal(bank.weight1[0], bank.weight1[1])
    bank.copy_mlp(nn.Linear(D, 8, bias=False), second)
    assert not bank.bias1.any()
    with pytest.raises(ConfigError, match="a layer 6 → 7 cannot begin the experts' 6 → 8"):
        bank.copy_mlp(nn.Linear(D, 7), nn.Linear(7, D))


def test_experts_may_begin_alike() -> None:
    torch.manual_seed(0)
    bank, x = MLPBank(4, 24, 48), torch.randn(5, 24)
    apart = bank.every(x).std(dim=0).mean()
    bank.begin_alike(0.01)
    near = bank.every(x).std(dim=0).mean()
    assert 0 < near < 0.05 * apart


def test_what_does_not_fit_together() -> None:
    layer, x = SparseExperts(MLPBank(E, D, 8)), torch.randn(5, D)
    with pytest.raises(ConfigError, match="experts of the router must be the layer's 4, not 3"):
        layer(x, Router(D, 3, ["see"])(x, "see", 1))
    with pytest.raises(ConfigError, match="routed tokens must be the layer's 5, not 2"):
        layer(x, Router(D, E, ["see"])(x[:2], "see", 1))
    for capacity in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match="capacity"):
            SparseExperts(MLPBank(E, D, 8), capacity)
    with pytest.raises(ConfigError, match="experts"):
        MLPBank(0, D, 8)

"""Routers: one for each task or one for all, k from call to call, noise in training only."""

from __future__ import annotations

import math

import pytest
import torch

from manylabel.error import ConfigError
from manylabel.expert import Router

TASKS = ["classify", "detect"]


def build(**options: object) -> Router:
    torch.manual_seed(0)
    return Router(16, 4, TASKS, **options)  # type: ignore[arg-type]


def test_weights_are_the_highest_probabilities_as_they_are() -> None:
    router, x = build().eval(), torch.randn(3, 5, 16)
    for k in range(1, 5):  # the same router: k is no part of it
        routing = router(x, "detect", k)
        highest = (x @ router.gate["detect"].T).softmax(dim=-1).flatten(0, 1).sort(descending=True)
        assert (routing.k, routing.experts, routing.noise) == (k, 4, 0.0)
        assert torch.equal(routing.expert, highest.indices[:, :k])
        assert torch.allclose(routing.weight, highest.values[:, :k], atol=1e-6)
        assert torch.equal(routing.noisy, routing.logits)
    assert (routing.weight.sum(dim=1) - 1).abs().max() < 1e-6  # all of them
    renormalised = build(renormalise=True).eval()(x, "detect", 2).weight
    assert (renormalised.sum(dim=1) - 1).abs().max() < 1e-6
    assert (renormalised[:, 0] >= renormalised[:, 1]).all()


@pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
def test_noise_in_training_only(noise: float) -> None:
    router, x = build(noise=noise), torch.randn(4000, 16)
    routing = router(x, "classify", 2)
    assert routing.noise == noise / 4
    epsilon = (routing.noisy - routing.logits).detach()
    assert float(epsilon.std()) == pytest.approx(noise / 4, rel=0.05)
    assert abs(float(epsilon.mean())) < 0.02
    assert torch.equal(routing.expert, routing.noisy.topk(2).indices)  # the noisy ones choose …
    assert torch.equal(routing.weight, routing.noisy.softmax(dim=-1).topk(2).values)
    assert torch.equal(routing.probability, routing.logits.softmax(dim=-1))  # … and importance looks at the clean ones
    router.eval()
    assert torch.equal(router(x, "classify", 2).noisy, routing.logits)


def test_every_task_has_its_own_weights_or_all_have_one() -> None:
    x, own, one = torch.randn(6, 16), build().eval(), build(kind="agnostic").eval()
    assert not torch.equal(own(x, "classify", 1).logits, own(x, "detect", 1).logits)
    assert torch.equal(one(x, "classify", 1).logits, one(x, "detect", 1).logits)
    assert [len(list(router.parameters())) for router in (own, one)] == [2, 1]
    own(x, "detect", 1).weight.sum().backward()
    assert own.gate["classify"].grad is None
    assert own.gate["detect"].grad.abs().sum() > 0


def test_one_router_may_read_which_task_it_is() -> None:
    """M³ViT's: the task as one of T behind the token, and one set of weights."""
    router, x = build(kind="conditioned").eval(), torch.randn(6, 16)
    (g,) = router.parameters()
    for number, task in enumerate(TASKS):
        literal = torch.stack([g @ torch.cat([token, torch.eye(2)[number]]) for token in x])
        torch.testing.assert_close(router(x, task, 1).logits, literal)


@pytest.mark.parametrize("kind", ["task", "agnostic", "conditioned"])
def test_routers_of_several_layers(kind: str) -> None:
    router, x = build(kind=kind, layers=3).eval(), torch.randn(6, 16)
    whose = "detect" if kind == "task" else "every"
    first, _, second, _ = router.before[whose]
    read = torch.cat([x, torch.eye(2)[1].expand(6, -1)], dim=1) if kind == "conditioned" else x
    hidden = torch.nn.functional.gelu(read @ first.weight.T + first.bias)
    hidden = torch.nn.functional.gelu(hidden @ second.weight.T + second.bias)
    routing = router(x, "detect", 2)
    torch.testing.assert_close(routing.logits, hidden @ router.gate[whose].T)
    torch.testing.assert_close(routing.hidden, hidden)
    routing.weight.sum().backward()
    assert all(p.grad is not None for name, p in router.named_parameters() if "classify" not in name)
    assert all(p.grad is None for name, p in router.named_parameters() if "classify" in name)


def test_a_start_that_prefers_nobody_by_much() -> None:
    torch.manual_seed(0)
    logits = Router(384, 64, TASKS)(torch.randn(1000, 384), "detect", 1).logits.detach()
    assert 0.7 < float(logits.std()) < 1.1
    assert float(logits.mean(dim=0).abs().max()) < 0.2


def test_choices_do_not_hang_on_the_precision_of_the_rest() -> None:
    router, x = build().eval(), torch.randn(500, 16)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = router(x, "detect", 2)
    assert mixed.logits.dtype == torch.float32
    assert torch.equal(mixed.logits, router(x, "detect", 2).logits)
    small = router.bfloat16()(x.bfloat16(), "detect", 2)
    assert small.weight.dtype == torch.float32


@pytest.mark.parametrize("k", [0, -1, 5, math.nan])
def test_more_experts_than_there_are(k: int) -> None:
    with pytest.raises(ConfigError, match="k of task 'detect' must be from 1 to the 4 experts"):
        build()(torch.randn(2, 16), "detect", k)


@pytest.mark.parametrize("kind", ["task", "agnostic", "conditioned"])
def test_an_unknown_task(kind: str) -> None:
    with pytest.raises(ConfigError, match="no router for task 'detct'; did you mean 'detect'"):
        build(kind=kind)(torch.randn(2, 16), "detct", 1)


@pytest.mark.parametrize("tasks", [["a", "a"], ["a.b"], ["keys"]])
def test_names_that_cannot_be_stored(tasks: list[str]) -> None:
    with pytest.raises(ConfigError, match="a task's name"):
        Router(16, 4, tasks)


def test_settings_out_of_range() -> None:
    for wrong, name in (({"noise": -1.0}, "noise"), ({"noise": math.nan}, "noise")):
        with pytest.raises(ConfigError, match=name):
            build(**wrong)
    with pytest.raises(ConfigError, match="experts"):
        Router(16, 0, TASKS)
    with pytest.raises(ConfigError, match="tasks"):
        Router(16, 4, [])

"""What is told about routing: a collapsed router shows, choices are compared between steps, gradients between tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from manylabel.analysis.routing import SECTORS, TaskRouting, circle, concentration, entropy
from manylabel.analysis.routing_patches import SIDE, paint
from manylabel.analysis.routing_probe import RoutingProbe, hamming, settling
from manylabel.config import make_config
from manylabel.core.trace import Trace
from manylabel.data.dataset import Batch
from manylabel.expert import Routing
from manylabel.model import Model
from manylabel.training.pull import Pull

TASK = {"kind": "multi_label", "data": {"path": "scenes"}, "image_size": 32}
OPTIONS = {"size": "own", "layers": 2, "heads": 2, "width": 16, "hidden": 32, "patch": 8, "experts": {"count": 4}}
VIT = {"name": "moe_vit", "weights": "none", "freeze": "full", "options": OPTIONS}


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    config = make_config({"tasks": {"a": TASK, "b": TASK}, "backbone": VIT})
    return Model(config, {"a": 3, "b": 5})


def test_entropy_of_use() -> None:
    assert entropy(np.full(8, 1 / 8)) == pytest.approx(1)
    assert entropy(np.array([1.0, 0, 0])) == pytest.approx(0)


def test_tokens_that_all_say_the_same_are_in_one_place_of_the_circle() -> None:
    rng = np.random.default_rng(0)
    spread = circle(rng.normal(size=(4000, 6)))
    line = circle(np.outer(rng.normal(size=4000), np.arange(6)) + 1e-3 * rng.normal(size=(4000, 6)))
    assert spread.sum() == pytest.approx(1)
    assert line.max() > 3 * spread.max()


def test_a_collapsed_router_is_told_from_one_that_has_specialised() -> None:
    """Planted: all tokens point one way with a little noise; tokens of eight kinds point eight ways."""
    rng = np.random.default_rng(0)
    noise = 0.05 * rng.normal(size=(4000, 32))
    collapsed = rng.normal(size=32) + noise
    kinds = np.linalg.qr(rng.normal(size=(32, 8)))[0].T * 3
    specialised = kinds[rng.integers(8, size=4000)] + noise
    assert concentration(collapsed) > 0.95
    assert concentration(specialised) < 0.5
    one, many = circle(collapsed), circle(specialised)
    assert entropy(one) < 0.6 < 0.8 < entropy(many)
    assert one.max() > 2 * many.max()


def test_hidden_states_are_what_the_last_router_reads(model: Model) -> None:
    """Not its probabilities, which are alike where it has collapsed."""
    images, routes, body = (
        torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8),
        dict[int, Routing](),
        model.backbone.body,
    )
    heard: list[torch.Tensor] = []
    body.vit.blocks[1].norm2.register_forward_hook(lambda _m, _i, out: heard.append(out.detach()))
    with torch.no_grad():
        model.eval().backbone(images, Trace(routes=routes), "a")
    found = TaskRouting(4)
    found.add(Batch(images, torch.arange(2)), routes)
    np.testing.assert_array_equal(np.concatenate(found.hidden), heard[0].flatten(0, 2).numpy())


def test_routing_of_two_steps_differs_by_all_chosen_experts() -> None:
    one = np.array([[0, 1], [2, 3]])
    assert hamming(one, one[:, ::-1]) == 0  # the same two
    assert hamming(one, np.array([[0, 2], [2, 3]])) == 0.25  # the first choice is the same, one of four is not
    assert hamming(one, one + 4) == 1
    assert hamming(one[:, :1], one) == pytest.approx(1 - 2 * 2 / 6)  # a growth is a difference, too


def test_choices_of_two_steps_are_compared(tmp_path: Path) -> None:
    for step, choices in ((10, [0, 1, 2, 3]), (20, [0, 1, 2, 0]), (30, [3, 2, 1, 0])):
        np.savez(tmp_path / f"step-{step:09d}.npz", **{"a/1": np.array(choices)})
    told = settling(tmp_path)
    assert told["steps"] == [10, 20, 30]
    assert told["distances"]["a/1"] == [[0, 0.25, 1], [0.25, 0, 0.75], [1, 0.75, 0]]
    RoutingProbe(tmp_path).forget_after(10)
    assert settling(tmp_path) == {}


def test_tasks_that_pull_apart(model: Model) -> None:
    shared = model.backbone.body.vit.blocks[-1].attn.qkv.weight
    conflict = Pull(model)
    for task, sign in (("a", 1.0), ("b", -3.0)):
        (sign * shared.sum()).backward()
        conflict.after(task)
    assert conflict.cosines() == {"a, b": pytest.approx(-1)}
    one = shared.numel() ** 0.5
    assert conflict.lengths() == {"a": pytest.approx(one, rel=1e-3), "b": pytest.approx(3 * one, rel=1e-3)}


def test_experts_are_not_what_tasks_have_in_common(model: Model) -> None:
    """They are used in different ways; attention and norms of the last layer are not."""
    last = model.backbone.body.vit.blocks[-1]
    conflict = Pull(model)
    for task, sign in (("a", 1.0), ("b", -1.0)):
        (last.mlp.experts.weight1.sum() + sign * last.norm1.weight.sum()).backward()
        conflict.after(task)
    assert conflict.cosines() == {"a, b": pytest.approx(-1)}
    assert conflict.lengths()["a"] == pytest.approx(last.norm1.weight.numel() ** 0.5, rel=1e-3)


def test_what_belongs_to_a_task(model: Model) -> None:
    owners, body = model.owners(), "backbone.body.vit"
    assert owners[f"{body}.embed.a.position"] == "a"
    assert owners[f"{body}.blocks.1.router.gate.b"] == "b"
    assert owners["heads.b.classifier.weight"] == "b"
    assert {f"{body}.blocks.1.mlp.experts.weight1", f"{body}.blocks.0.attn.qkv.weight"}.isdisjoint(owners)
    assert set(owners) < {name for name, _ in model.named_parameters()}


def test_active_parameters_count_the_experts_in_use(model: Model) -> None:
    expert = 2 * 16 * 32 + 32 + 16
    one = model.active_parameters("a")
    model.backbone.body.selection.k[0] = 3
    model.backbone.body.selection.note()
    assert model.active_parameters("a") - one == 2 * expert
    everything = sum(p.numel() for p in model.parameters())
    others = sum(p.numel() for n, p in model.named_parameters() if model.owners().get(n) == "b")
    assert one == everything - others - 3 * expert
    head = sum(p.numel() for p in model.heads["a"].parameters())
    assert model.active_parameters("a", "backbone.") == model.active_parameters("a") - head


def test_patches_are_drawn_in_the_colours_of_their_experts() -> None:
    choice = np.zeros((2, 2, 2), int)
    choice[0, 1] = [1, 1]
    picture = np.asarray(paint(np.zeros((16, 16, 3), np.uint8), choice))
    assert picture.shape == (SIDE, SIDE, 3)
    assert not np.array_equal(picture[0, 0], picture[0, -1])
    np.testing.assert_array_equal(picture[0, 0], picture[-1, -1])


def test_one_expert_of_a_patch_is_no_second_one() -> None:
    """Where a token has one expert, the edge shows it and nothing is tinted."""
    picture = np.asarray(paint(np.full((16, 16, 3), 100, np.uint8), np.ones((2, 2, 1), int)))
    assert (picture[SIDE // 4, SIDE // 4] == 100).all()
    assert (picture[0, 0] != 100).any()


def test_one_expert_has_no_directions() -> None:
    assert circle(np.ones((40, 1))).sum() == pytest.approx(1)
    assert len(circle(np.ones((40, 1)))) == SECTORS

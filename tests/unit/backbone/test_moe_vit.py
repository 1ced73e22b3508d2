"""The vision transformer for several tasks: the same as timm's where it is dense, windows, positions, what is shared."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from manylabel.backbone.moe_vit import Block, MoeViT
from manylabel.backbone.taps import FORMS, TapsLinear, is_unchanged, sharing_cost, taps_layers, turn_of, with_changes
from manylabel.backbone.vit_size import SIZES, VitSize, size_of, sparse_layers
from manylabel.backbone.vit_weights import begin_with
from manylabel.config import ExpertsConfig, VitConfig
from manylabel.core.trace import Trace
from manylabel.error import ConfigError, WeightsError
from manylabel.expert import Routing

SMALL = VitSize(4, 2, 16, 32)
DENSE = ExpertsConfig(sharing="dense")


def _vit(experts: ExpertsConfig = DENSE, size: VitSize = SMALL, **sides: int) -> MoeViT:
    torch.manual_seed(0)
    return MoeViT(size, 8, experts, sides or {"labels": 32}).eval()


@pytest.fixture
def weights(tmp_path: Path) -> tuple[torch.nn.Module, str]:
    """A plain ViT of timm with random weights, and a file of them."""
    torch.manual_seed(1)
    body = timm.create_model(
        "vit_tiny_patch16_224",
        img_size=32,
        patch_size=8,
        embed_dim=16,
        depth=4,
        num_heads=2,
        mlp_ratio=2,
        class_token=False,
        global_pool="avg",
        fc_norm=False,
        num_classes=0,
    ).eval()
    for parameter in body.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    path = tmp_path / "vit.safetensors"
    save_file(body.state_dict(), path)
    return body, str(path)


@pytest.mark.parametrize("sharing", ["dense", "experts"])
def test_it_begins_as_the_transformer_it_was_given(weights: tuple[torch.nn.Module, str], sharing: str) -> None:
    """Experts that are all the same MLP, with weights that add up to 1, are that MLP; a hundredth of noise is allowed."""
    body, path = weights
    vit = _vit(ExpertsConfig(sharing=sharing, renormalise=True, capacity=0))  # type: ignore[arg-type]
    begin_with(vit, path)
    x = torch.randn(2, 3, 32, 32)
    theirs = body.forward_features(x).transpose(1, 2).unflatten(2, (4, 4))
    ours = vit(x, "labels", 2)[0].permute(0, 3, 1, 2)
    torch.testing.assert_close(ours, theirs, atol=1e-5 if sharing == "dense" else 0.1, rtol=1e-4)


def test_weights_of_another_transformer_are_refused(weights: tuple[torch.nn.Module, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has the shape \(16,\), where this transformer has \(32,\)"):
        begin_with(_vit(size=VitSize(4, 2, 32, 32)), weights[1])
    with pytest.raises(ConfigError, match="no plain ViT of 6 layers"):
        begin_with(_vit(size=VitSize(6, 2, 16, 32)), weights[1])
    with pytest.raises(WeightsError, match="cannot read .*none.safetensors: No such file"):
        begin_with(_vit(), str(tmp_path / "none.safetensors"))


@pytest.mark.parametrize(("height", "width", "share"), [(4, 4, 0.5), (5, 7, 0.5), (6, 3, 0.34), (4, 4, 1.0)])
def test_windows_look_at_themselves_alone(height: int, width: int, share: float) -> None:
    torch.manual_seed(0)
    block = Block(SMALL, share, 0.0).eval()
    x = torch.randn(2, height, width, 16)
    rows, columns = -(-height * share // 1), -(-width * share // 1)
    rows, columns = int(rows), int(columns)
    literal = torch.empty_like(x)
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            tile = x[:, top : top + rows, left : left + columns]
            seen = block.attn(tile.flatten(1, 2)).view_as(tile)
            literal[:, top : top + rows, left : left + columns] = seen
    torch.testing.assert_close(block.look(x), literal, atol=1e-6, rtol=1e-5)


def test_images_of_any_size() -> None:
    vit = _vit(ExpertsConfig(count=4), labels=32, objects=64)
    for task, size, grid in (("labels", (32, 32), (4, 4)), ("labels", (40, 24), (5, 3)), ("objects", (50, 61), (7, 8))):
        assert vit(torch.randn(1, 3, *size), task, 2)[0].shape == (1, *grid, 16)


def test_tasks_share_experts_and_have_their_own_routers() -> None:
    vit = _vit(ExpertsConfig(count=4), labels=32, objects=32)
    routes: dict[int, Routing] = {}
    vit(torch.randn(1, 3, 32, 32), "objects", 3, Trace(routes=routes))[0].sum().backward()
    assert sorted(routes) == [1, 3]
    assert routes[1].expert.shape == (16, 3)
    touched = {name for name, p in vit.named_parameters() if p.grad is not None}
    assert not any("labels" in name for name in touched)
    assert any("gate.objects" in name for name in touched)
    assert any("mlp.experts.weight1" in name for name in touched)


def test_one_router_for_all_tasks() -> None:
    vit = _vit(ExpertsConfig(count=4, router="agnostic"), labels=32, objects=32)
    vit.embed["objects"].load_state_dict(vit.embed["labels"].state_dict())
    x = torch.randn(1, 3, 32, 32)
    torch.testing.assert_close(vit(x, "labels", 2)[0], vit(x, "objects", 2)[0])


def test_recomputing_gives_the_same_gradients() -> None:
    vit = _vit(ExpertsConfig(count=4, noise=0.0)).train()
    x = torch.randn(2, 3, 32, 32)
    grads = []
    for vit.recompute in (False, True):
        vit.zero_grad()
        vit(x, "labels", 2)[0].square().sum().backward()
        grads.append([p.grad.clone() for p in vit.parameters() if p.grad is not None])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


def test_sizes_of_the_paper() -> None:
    """Table 2, and that 8 experts in half of the layers hold 8 MLPs where one was."""
    for name, millions in (("small*", 11.0), ("small", 21.7), ("base", 85.8), ("uvit-base", 32.3)):
        with torch.device("meta"):
            vit = MoeViT(SIZES[name], 16, DENSE, {"labels": 224})
        assert sum(p.numel() for p in vit.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)
    assert sparse_layers("every_two", 6) == (1, 3, 5)
    assert sparse_layers("early", 6) == (0, 1, 2)
    assert sparse_layers("middle", 6) == (1, 2, 3)
    assert sparse_layers("later", 6) == (3, 4, 5)


def test_sizes_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"options\.size.*beside backbone\.options\.layers"):
        size_of(VitConfig(size="own"))
    with pytest.raises(ConfigError, match=r"options\.width.*multiple"):
        size_of(VitConfig(size="small", width=100))
    with pytest.raises(ConfigError, match=r"backbone\.options\.windows"):
        size_of(VitConfig(size="small", windows=(0.5,)))


def test_taps_changes_a_layer_where_a_task_wants_it() -> None:
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    x = torch.randn(3, 4)
    before = body(x)
    form = FORMS["taps"]
    with_changes(body, ["a", "b"], form)
    with turn_of("a"):
        torch.testing.assert_close(body(x), before)  # nothing is changed to begin with
    layer = body[0]
    assert isinstance(layer, TapsLinear)
    layer.delta["a"].data.fill_(1.0)
    with turn_of("a"):
        assert not torch.allclose(body(x), before)
        with turn_of("b"):
            torch.testing.assert_close(body(x), before)
        assert not torch.allclose(body(x), before)
        layer.score["a"].data.fill_(form.threshold / 2)
        torch.testing.assert_close(body(x), before)  # not worth its cost any more
    torch.testing.assert_close(body(x), before)  # nobody's turn
    assert is_unchanged(layer, "a")
    assert not is_unchanged(layer, "b")
    assert float(sharing_cost(body, "b").detach()) == pytest.approx(form.start)
    with turn_of("a"):
        (body(x).sum() + sharing_cost(body, "a")).backward()
    assert layer.score["a"].grad is not None


def test_taps_as_released() -> None:
    """MLPs alone, scores from 1 with a threshold of 0.05; shared weights learn while one task is alone, then rest."""
    vit = _vit(ExpertsConfig(sharing="taps_released"), labels=32, objects=32).train()
    with_changes(vit.blocks, ["labels", "objects"], FORMS["taps_released"])
    layers = {name: one for name, one in vit.named_modules() if isinstance(one, TapsLinear)}
    assert set(layers) == {f"blocks.{i}.mlp.fc{j}" for i in range(4) for j in (1, 2)}
    assert {float(one.score[task].detach()) for one in layers.values() for task in ("labels", "objects")} == {1.0}
    x, one = torch.randn(2, 3, 32, 32), vit.blocks[0].mlp.fc1
    for alone in (True, False):
        for layer in taps_layers(vit.blocks):
            layer.begin_phase(alone)
        vit.zero_grad(set_to_none=True)
        vit(x, "labels")[0].square().sum().backward()
        assert (one.weight.grad is not None) == alone
        assert (one.delta["labels"].grad is not None) == (not alone)
        assert one.delta["objects"].grad is None
        assert one.bias.grad is not None
    one.delta["labels"].data.fill_(0.1)
    moved = vit(x, "labels")[0]
    one.score["labels"].data.fill_(0.06)
    torch.testing.assert_close(vit(x, "labels")[0], moved)
    one.score["labels"].data.fill_(0.04)
    assert not torch.allclose(vit(x, "labels")[0], moved)


# --- the paper's tables -------------------------------------------------------------------------------------------------

BESIDE = 7870  # parameters of Table 1 beside the layers, for each channel of a token: (13.67 − 10.65) M / 384


@pytest.mark.parametrize(
    ("name", "width", "hidden", "dense", "large"),
    [
        ("small*", 480, 1920, 13.67, 20.41),
        ("small", 480, 1920, 24.32, 37.03),
        ("base", 900, 3600, 91.10, 123.87),
        ("uvit-base", 480, 1920, 34.96, 53.66),
    ],
)
def test_large_dense_is_a_wider_token(name: str, width: int, hidden: int, dense: float, large: float) -> None:
    """Table 1's parameters of Dense and Large Dense: a wider MLP alone could not have them."""
    for options, told in (({}, dense), ({"width": width, "hidden": hidden}, large)):
        size = size_of(VitConfig(size=name, **options))  # type: ignore[arg-type]
        with torch.device("meta"):
            vit = MoeViT(size, 16, DENSE, {"labels": 224})
        layers = sum(p.numel() for p in vit.blocks.parameters())
        assert (layers + BESIDE * size.width) / 1e6 == pytest.approx(told, abs=0.03)


def test_one_expert_is_a_dense_network() -> None:
    """Table 4's E = 1: the same outputs and gradients as MTL-ViT, and a balance that costs nothing."""
    sparse = _vit(ExpertsConfig(count=1), labels=32, objects=32).train()
    dense = _vit(labels=32, objects=32).train()
    own = dense.state_dict()
    for number in sparse.sparse:
        bank = sparse.blocks[number].mlp.experts
        own[f"blocks.{number}.mlp.fc1.weight"] = bank.weight1[0].detach().T
        own[f"blocks.{number}.mlp.fc2.weight"] = bank.weight2[0].detach().T
    for name, tensor in sparse.state_dict().items():
        if name in own:
            own[name] = tensor
    dense.load_state_dict(own)
    x, grads = torch.randn(2, 3, 32, 32), []
    for vit in (dense, sparse):
        y, costs = vit(x, "objects", 1)
        y.square().sum().backward()
        grads.append((y, vit.blocks[0].attn.qkv.weight.grad, vit.embed["objects"].position.grad))
        assert all(float(cost.detach()) == 0 for cost in costs.values())
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


def test_m3vits_experts_are_as_wide_as_a_token() -> None:
    """16 of them, four for a token: as many products as the MLP has."""
    vit = _vit(ExpertsConfig(count=16, hidden=16, router="conditioned"), labels=32, objects=32)
    assert vit.blocks[1].mlp.experts.weight1.shape == (16, 16, 16)
    assert not torch.allclose(vit.blocks[1].router(torch.zeros(1, 16), "labels", 4).logits, torch.zeros(1, 16))
    assert vit(torch.randn(1, 3, 32, 32), "objects", 4)[0].shape == (1, 4, 4, 16)

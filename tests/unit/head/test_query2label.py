"""Query2Label begins and ends as in its authors' code, and what of HSQ is nothing but Query2Label."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from manylabel.config import Part, load_recipe, make_config, migrated, recipe_names
from manylabel.features import Features
from manylabel.head import HEADS, HSQ, Query2Label
from manylabel.head.query2label import QueryOptions, QueryTransformer

SMALL: dict[str, Any] = {"dim": 16, "heads": 4, "hidden": 20, "dropout": 0.0}


def build(name: str, labels: int = 5, **options: Any) -> Any:
    torch.manual_seed(0)
    return HEADS.build(Part(name, SMALL | options), channels={"final": 9}, num_labels=labels).eval()


def features() -> Features:
    return Features({"final": torch.randn(4, 9, 2, 3, generator=torch.Generator().manual_seed(1))})


# --- as released ------------------------------------------------------------------------------------------------------


def test_its_decoder_ends_with_a_norm() -> None:
    head = build("query2label", dim=64)
    with torch.no_grad():
        head.transformer.norm.weight.fill_(3)
        head.transformer.norm.bias.fill_(2)
    h = head.transformer(features())
    assert torch.allclose(h.mean(dim=-1), torch.full((4, 5), 2.0), atol=1e-4)
    assert torch.allclose(h.std(dim=-1, correction=0), torch.full((4, 5), 3.0), atol=1e-3)


def test_heads_that_are_stored_without_that_norm_stay_so() -> None:
    stored = {"name": "query2label", "encoder_layers": 1}  # stored heads have all options
    assert migrated({"head": stored})["head"]["decoder_norm"] is False
    assert migrated({"tasks": {"a": {"head": stored}}})["tasks"]["a"]["head"]["decoder_norm"] is False
    assert migrated({"head": {**stored, "decoder_norm": True}})["head"]["decoder_norm"] is True
    assert "decoder_norm" not in migrated({"head": {"name": "linear"}})["head"]
    assert not list(build("query2label", decoder_norm=False).transformer.norm.parameters())


def released(dim: int, hidden: int) -> dict[str, float]:
    """Bounds of what torch's own fused attention and linear layers begin with, when all matrices are xavier-uniform."""
    attention, w1, w2 = nn.MultiheadAttention(dim, 4), nn.Linear(dim, hidden), nn.Linear(hidden, dim)
    matrices = (attention.in_proj_weight, attention.out_proj.weight, w1.weight, w2.weight)
    fused, out, first, second = (float(nn.init.xavier_uniform_(matrix).detach().abs().max()) for matrix in matrices)
    return {"query": fused, "key": fused, "value": fused, "out": out, "feed_forward.0": first, "feed_forward.3": second}


def test_its_matrices_begin_as_released() -> None:
    torch.manual_seed(0)
    transformer = QueryTransformer(QueryOptions(dim=128, hidden=256, heads=4), {"final": 9}, 5)
    bounds = released(128, 256)
    seen = set()
    for layers in (transformer.encoder, transformer.decoder):
        for name, parameter in layers.named_parameters():
            for part, bound in bounds.items():
                if name.endswith(f"{part}.weight"):
                    seen.add(part)
                    assert float(parameter.detach().abs().max()) == pytest.approx(bound, rel=0.01), name
                    assert float(parameter.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.02), name
            if name.endswith(("query.bias", "key.bias", "value.bias", "out.bias")):
                assert not parameter.any()
    assert seen == set(bounds)
    assert float(transformer.queries.weight.detach().std()) == pytest.approx(1, abs=0.1)


# --- what folds into it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [("hsq_linear", {}), ("hsq", {"shared_experts": 0})], ids=str)
def test_one_layer_without_activation_is_query2label(variant: tuple[str, dict[str, Any]]) -> None:
    """w_n = E_n v_n: such a layer trains nothing that the classifier alone could not."""
    name, options = variant
    hsq = build(name, layer_dims=(16,), activation="none", **options)
    (layer,) = hsq.layers
    bank = layer.task if layer.task is not None else layer.shared
    plain: Query2Label = build("query2label")
    plain.transformer.load_state_dict(hsq.transformer.state_dict())
    with torch.no_grad():
        expert = bank.weight[:, :, 0].expand(5, -1, -1)  # [N, D, d_o], the same for all labels where it is shared
        plain.classifier.weight.copy_((expert @ hsq.classifier.weight[:, :, 0]).squeeze(-1))
        plain.classifier.bias.copy_(hsq.classifier.bias[:, 0, 0])
    assert (hsq(features()).logits - plain(features()).logits).abs().max() < 2e-6


class Given(nn.Module):
    """In place of a transformer: these vectors."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x

    def forward(self, *_: Any) -> Tensor:
        return self.x


def bend(head: HSQ) -> float:
    """How far what stands behind the transformer is from a linear classifier for each label: 0 = it folds."""
    generator = torch.Generator().manual_seed(2)
    x, y = (torch.randn(8, 5, 16, generator=generator) for _ in range(2))
    answers = []
    for vectors in (x, y, (x + y) / 2):
        head.transformer = Given(vectors)
        answers.append(head(features()).logits.detach())
    return float((answers[2] - (answers[0] + answers[1]) / 2).abs().max() / answers[2].abs().max())


def test_a_fold_is_seen() -> None:
    for name, options in (("hsq_linear", {}), ("hsq", {"shared_experts": 0})):
        assert bend(build(name, layer_dims=(16,), activation="none", **options)) < 1e-5
        assert bend(build(name, layer_dims=(16, 8), activation="none", **options)) < 1e-5  # depth alone is no help
        assert bend(build(name, layer_dims=(16, 8), **options)) > 1e-2


ONE_TASK = [name for name in recipe_names() if "tasks" not in load_recipe(name)]
SHARING = [name for name in ONE_TASK if make_config(name).only.head.name in ("hsq", "hsq_linear")]


@pytest.mark.parametrize("ablated", [{}, {"shared_experts": 0}, {"name": "hsq_linear"}], ids=str)
@pytest.mark.parametrize("recipe", [None, *SHARING])
def test_no_recipe_is_query2label_in_disguise(recipe: str | None, ablated: dict[str, Any]) -> None:
    """Nor are the ablations of one: with other names, and with one kind of expert."""
    config = make_config(recipe).only.head if recipe else Part("hsq")
    name = ablated.get("name", config.name)
    known = {field.name for field in fields(HEADS.get(name).Options)}
    options = {**config.options, **ablated}
    widths = options.get("layer_dims", HSQ.Options().layer_dims)
    assert len(widths) == 2
    if name == "hsq_linear" and ablated.get("shared_experts") == 0:
        pytest.skip("has one expert whatever is set")
    narrow = {"dim": 16, "heads": 4, "hidden": 8, "layer_dims": tuple(min(width, 16) for width in widths)}
    head = build(name, **{k: v for k, v in {**options, **narrow}.items() if k in known})
    assert bend(head) > 1e-2

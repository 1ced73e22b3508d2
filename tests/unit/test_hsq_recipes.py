"""What the recipes of the HSQ paper do: sizes, layers, experts, gates, optimiser, weights."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch

from manylabel import heads
from manylabel.config import Config, make_config, recipe_folder
from manylabel.head import HSQ
from manylabel.heads import WithHead
from manylabel.run import resolve
from manylabel.training.optimise import OPTIMISERS

PAPER = ("hsq-r101", "hsq-convnext", "hsq-voc-paper", "hsq-r10t", "hsq-linear-r10t", "query2label-r10t")
OURS = ("hsq-laptop", "hsq-linear-laptop", "query2label-laptop", "hsq-ml-decoder")


def made(name: str, labels: int = 80, *settings: str) -> tuple[Config, WithHead]:
    """Its settings and its model, without memory for weights."""
    config = resolve(make_config(name, settings))
    with torch.device("meta"):
        body: Any = timm.create_model(config.backbone.name)
        return config, heads.attach(body, config.only.head.name, labels, **config.only.head.options)


def shared(model: WithHead) -> list[tuple[int, ...]]:
    """(d_i, n_t, n_s, d_o) of each hybrid-sharing layer."""
    assert isinstance(model.head, HSQ)
    layers: list[Any] = list(model.head.layers)
    return [((layer.task or layer.shared).weight.shape[1], layer.n_t, layer.n_s, layer.d_out) for layer in layers]


# --- Table 1, A.2 -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("recipe", "settings", "millions"),
    [
        ("query2label-r10t", (), 14.8),
        ("hsq-r10t", ("head.shared_experts=1",), 14.3),
        ("hsq-r10t", (), 15.5),
    ],
)
def test_sizes_are_those_of_the_paper(recipe: str, settings: tuple[str, ...], millions: float) -> None:
    _, model = made(recipe, 80, *settings)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)


@pytest.mark.filterwarnings("ignore")
def test_the_rows_of_the_ablation() -> None:
    assert shared(made("hsq-r10t")[1]) == [(512, 1, 16, 64), (64, 1, 16, 16)]
    for n_s in (0, 1, 4):
        assert shared(made("hsq-r10t", 80, f"head.shared_experts={n_s}")[1]) == [(512, 1, n_s, 64), (64, 1, n_s, 16)]
    linear, hsq = (made(name)[0].only.head for name in ("hsq-linear-r10t", "hsq-r10t"))
    assert shared(made("hsq-linear-r10t")[1]) == [(512, 0, 1, 64), (64, 0, 1, 16)]  # depth and dimensions are the same
    assert all(hsq.options[key] == value for key, value in linear.options.items() if key in hsq.options)
    for name in ("hsq-r10t", "hsq-linear-r10t", "query2label-r10t"):
        config, model = made(name)
        assert (config.backbone.name, config.backbone.image_size) == ("resnet10t", 576)
        assert (len(model.head.transformer.encoder), len(model.head.transformer.decoder)) == (1, 2)


# --- Tables 2 and 3, A.3 ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_r101_has_wide_layers_and_perceptrons() -> None:
    config, model = made("hsq-r101")
    assert (config.backbone.name, config.backbone.image_size, model.body.num_features) == ("resnet101", 576, 2048)
    assert shared(model) == [(2048, 1, 16, 1024), (1024, 1, 16, 512)]
    first, second = model.head.layers
    assert first.gate.weight.shape == (80, 2048, 1, 128)
    assert first.gate.weight2.shape == (80, 128, 17)
    assert second.gate.weight.shape == (80, 1024, 1, 128)
    assert first.task.hidden is None  # experts are linear
    assert model.head.classifier.weight.shape == (80, 512, 1, 64)
    assert model.head.classifier.weight2.shape == (80, 64, 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("recipe", "labels", "n_s"), [("hsq-convnext", 80, 16), ("hsq-voc-paper", 20, 32)])
def test_convnext_with_2048_channels_is_the_xl_of_imagenet_22k(recipe: str, labels: int, n_s: int) -> None:
    config, model = made(recipe, labels)
    weights = timm.get_pretrained_cfg(config.backbone.name)
    assert (weights.architecture, weights.tag, weights.num_classes) == ("convnext_xlarge", "fb_in22k", 21841)
    assert config.backbone.weights == "auto"  # those of that name
    assert model.body.num_features == 2048
    assert model.head.transformer.queries.weight.shape == (labels, 2048)
    assert shared(model) == [(2048, 1, n_s, 64), (64, 1, n_s, 16)]
    assert model.head.layers[0].gate.hidden is None


@pytest.mark.parametrize("recipe", PAPER)
def test_training_is_as_the_paper_says(recipe: str) -> None:
    config = resolve(make_config(recipe))
    weight = torch.nn.Linear(2, 2)
    weight.rates = lambda _: {}  # type: ignore[assignment]
    optimiser = OPTIMISERS.build(config.optimiser).build(weight)
    assert type(optimiser) is torch.optim.Adam
    group = optimiser.param_groups[0]
    assert (group["lr"], group["betas"], group["weight_decay"]) == (1e-4, (0.9, 0.9999), 1e-2)
    assert config.optimiser.options["backbone_rate"] == 1
    assert config.train.epochs == 100
    assert config.backbone.freeze == "full"
    if config.backbone.name.startswith("resnet"):
        assert config.backbone.batch_norm == "moving"
    if config.only.head.name != "query2label":
        options = config.only.head.options
        assert (options["spread"], options["activation"], options.get("adaptive", False)) == (1.0, "relu", False)


@pytest.mark.parametrize("recipe", [*PAPER, *OURS])
def test_the_first_line_says_whose_is_what(recipe: str) -> None:
    first = (recipe_folder() / f"{recipe}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert any(whose in first for whose in ("the paper's:", "Query2Label's:", "ML-Decoder's:"))
    assert "ours:" in first or "as in hsq-r10t" in first
    for word in ("σ", "loss", "schedule", "EMA", "spread", "augmentation", "batch"):
        assert word in first or recipe in (*OURS, "hsq-linear-r10t", "query2label-r10t"), word

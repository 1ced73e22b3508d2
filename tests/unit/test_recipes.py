"""Every recipe's model can be built and gives logits, without computing anything (meta tensors)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch

from manylabel import heads
from manylabel.backbone import Backbone
from manylabel.backbone.bundled import BUNDLED
from manylabel.config import load_recipe, make_config, recipe_names
from manylabel.run import resolve

LABELS = {
    "ml-decoder-openimages": 9605,
    "ml-decoder-nus-zsl": 1006,
    "ml-decoder-imagenet": 1000,
    "ml-decoder-imagenet-a1": 1000,
    "ml-decoder-voc": 20,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in recipe_names() if "tasks" not in load_recipe(name)])
def test_the_model_of_a_recipe(name: str) -> None:
    config = resolve(make_config(name))
    labels = LABELS.get(name, 80)
    backbone = config.backbone.name
    size = config.backbone.image_size or 224
    vectors = np.ones((labels, 50), np.float32) if config.only.text.name != "none" else None
    with torch.device("meta"):
        body = timm.create_model(BUNDLED[backbone].timm_name if backbone in BUNDLED else backbone)
        model = heads.attach(body, config.only.head.name, labels, vectors=vectors, **config.only.head.options).eval()
        assert model(torch.empty(1, 3, size, size)).shape == (1, labels)


def test_the_papers_figures_are_in_the_recipes() -> None:
    paper, reference = (make_config(f"ml-decoder-coco-{kind}") for kind in ("paper", "reference"))
    assert (paper.optimiser.name, paper.optimiser.options["lr"]) == ("adamw", 2e-4)
    assert (reference.optimiser.name, reference.optimiser.options["lr"]) == ("adam", 1e-4)
    assert paper.only.head.options["dim"] == 768
    images = make_config("ml-decoder-openimages")
    assert images.only.loss.options["gamma_negative"] == 7
    assert images.only.head.options["groups"] == 100
    assert make_config("ml-decoder-imagenet").only.kind == "single_label"


PAPERS = [name for name in recipe_names() if name.endswith("-paper") or "reference" in name]


@pytest.mark.parametrize("name", PAPERS)
def test_what_our_defaults_have_and_papers_do_not_is_off(name: str) -> None:
    for task in make_config(name).tasks.values():
        assert task.kind == "detection" or task.head.options["prior_bias"] is False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["ml-decoder-coco-paper", "ml-decoder-coco-reference", "hsq-r101", "rm-ft-paper"])
def test_batch_norms_are_trained_where_a_paper_fine_tunes(name: str) -> None:
    """Although weights are loaded; here they are not, for none can be had."""
    config = make_config(name).backbone
    assert (config.freeze, config.batch_norm, config.weights) == ("full", "moving", "auto")
    body = Backbone(replace(config, name="test_resnet", weights="none", image_size=64)).train()
    body.config = config
    body._still = body._freeze()
    norms = [m for m in body.train().modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    assert norms
    assert all(norm.training for norm in norms)


def test_the_recipes_of_rm() -> None:
    paper = {name: make_config(f"rm-{name}-paper") for name in ("bit", "swin", "lp", "ft")}
    for name, config in paper.items():
        assert config.optimiser.name == "sgd"
        assert config.optimiser.options["lr"] == 0.1
        assert config.optimiser.options["momentum"] == 0.9
        assert config.only.loss.name == "soft_margin"
        assert config.schedule.name == "one_cycle"
        assert config.train.epochs == (50 if name == "lp" else 30)
        assert config.backbone.image_size == (384 if name == "swin" else 448)
    assert paper["ft"].optimiser.options["backbone_rate"] * 0.1 == pytest.approx(0.01)
    assert paper["bit"].only.neck.options["summary"] == "mean"
    assert paper["swin"].only.neck.options["summary"] == "pool1d"
    reference = make_config("rm-reference-effective")
    assert reference.schedule.options["cycle_momentum"] is True
    assert reference.only.augment.multi_scale
    assert make_config("ml-decoder-coco-reference").schedule.options["cycle_momentum"] is True

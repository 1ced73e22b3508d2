"""Every recipe's model can be built and gives logits, without computing anything (meta tensors)."""

from __future__ import annotations

import numpy as np
import pytest
import timm
import torch

from manylabel import heads
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

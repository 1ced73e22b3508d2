"""A model of several tasks: what its parts cost, how fast they learn, and on which backbones it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_tasks import SMALL

from manylabel.config import make_config
from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.training.optimise import CommonOptions


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model(make_config(SMALL, ["tasks.labels.lr_scale=2"]), {"labels": 3, "objects": 5})


def test_earlier_layers_may_learn_more_slowly(model: Model) -> None:
    rates, owners = model.rates(CommonOptions(layer_decay=0.5, backbone_rate=1.0)), model.owners()
    last = len(model.backbone.body.vit.blocks)
    assert {name for name, _ in model.backbone.named_parameters(prefix="backbone")} <= set(rates)
    for name, rate in rates.items():
        place = name.split(".")
        depth = 0 if ".embed." in name else int(place[4]) + 1 if ".blocks." in name else last
        own = model.config.tasks[owners[name]].lr_scale if name in owners else 1.0
        assert rate == own * 0.5 ** (last - depth)


def test_cost_of_a_head_is_counted_by_itself(model: Model) -> None:
    """Of a linear one: a product of channels and labels; of a detector with twice the proposals: more."""
    _, linear = model.task("labels").multiply_adds()
    assert linear == model.backbone.body.num_features * model.heads["labels"].num_labels
    transformer, some = model.task("objects").multiply_adds()
    detector = model.heads["objects"]
    detector.options = replace(detector.options, test_proposals=2 * detector.options.test_proposals)
    assert model.task("objects").multiply_adds()[0] == transformer
    assert model.task("objects").multiply_adds()[1] > some


def test_tasks_share_any_backbone(model: Model) -> None:
    """Labels and boxes on one convolutional network, each with images of its own size and stages of its own."""
    head = {"name": "query2label", "dim": 16, "heads": 2, "hidden": 16, "stages": ["stage-2", "final"]}
    recipe = {
        "tasks": {
            "labels": {"data": "scenes", "head": head, "neck": {"name": "rm", "stages": ["stage-1"]}},
            "objects": {**SMALL["tasks"]["objects"], "image_size": 96},
        },
        "backbone": {"name": "test_efficientnet", "weights": "none", "freeze": "full", "image_size": 64},
    }
    both = Model(make_config(recipe), {"labels": 3, "objects": 5})
    both.check()
    assert both.backbone.prepared("labels").size == 64
    assert both.backbone.prepared("objects").size == 96
    assert both.experts("labels") == 1
    trained = sum(p.numel() for n, p in both.named_parameters() if both.owners().get(n, "labels") == "labels")
    assert both.active_parameters("labels") == trained


def test_a_task_that_it_does_not_have(model: Model) -> None:
    with pytest.raises(ConfigError, match="no task 'object'.*objects"):
        model(torch.zeros(1, 3, 64, 64), "object")

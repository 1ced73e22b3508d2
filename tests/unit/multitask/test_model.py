"""A model of several tasks: what its parts cost, and how fast they learn."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_tasks import SMALL

from manylabel.error import ConfigError
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.results import multiply_adds
from manylabel.multitask.settings import make_multitask_config
from manylabel.training.optimise import CommonOptions


@pytest.fixture
def model() -> MultiTaskModel:
    torch.manual_seed(0)
    return MultiTaskModel(make_multitask_config(SMALL, ["tasks.labels.rate=2"]), {"labels": 3, "objects": 5})


def test_earlier_layers_may_learn_more_slowly(model: MultiTaskModel) -> None:
    rates = model.rates(CommonOptions(layer_decay=0.5))
    last = len(model.vit.blocks)
    for name, rate in rates.items():
        depth = 0 if ".embed." in name else int(name.split(".")[2]) + 1 if ".blocks." in name else last + 1
        owner = model.owner(name)
        assert rate == (1.0 if owner is None else model.config.tasks[owner].rate) * 0.5 ** (last + 1 - depth)


def test_cost_of_a_head_is_counted_by_itself(model: MultiTaskModel) -> None:
    """Of a linear one: a product of channels and labels; of a detector with twice the proposals: more."""
    _, linear = multiply_adds(model, "labels")
    assert linear == model.vit.size.width * model.head("labels").num_labels
    transformer, some = multiply_adds(model, "objects")
    detector = model.head("objects")
    detector.options = replace(detector.options, test_proposals=2 * detector.options.test_proposals)
    assert multiply_adds(model, "objects")[0] == transformer
    assert multiply_adds(model, "objects")[1] > some


def test_there_is_no_rate_of_a_backbone() -> None:
    with pytest.raises(ConfigError, match="backbone_rate means nothing.*layer_decay"):
        make_multitask_config(SMALL, ["optimiser.backbone_rate=0.5"])

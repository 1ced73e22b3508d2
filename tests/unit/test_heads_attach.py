"""heads.attach: our heads on people's own timm models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch import nn

from manylabel import heads
from manylabel.error import ConfigError


@pytest.mark.parametrize("backbone", ["test_efficientnet", "test_resnet", "test_vit", "test_convnext"])
@pytest.mark.parametrize(
    ("head", "options"), [("linear", {}), ("ml_decoder", {"groups": 3}), ("query2label", {"dim": 64})]
)
def test_any_model_any_head(backbone: str, head: str, options: dict[str, Any]) -> None:
    model = heads.attach(timm.create_model(backbone), head, 7, **options)
    size = model.body.pretrained_cfg["input_size"][-1]
    logits = model(torch.rand(2, 3, size, size))
    assert logits.shape == (2, 7)
    logits.sum().backward()
    assert all(p.grad is not None for p in model.head.parameters() if p.requires_grad)
    assert any(p.grad is not None for p in model.body.parameters())


def test_any_resolution_and_earlier_stages() -> None:
    model = heads.attach(timm.create_model("test_resnet"), "ml_decoder", 5, stages=("stage2", "final")).eval()
    for size in ((64, 64), (96, 160)):
        assert model(torch.rand(1, 3, *size)).shape == (1, 5)


def test_words() -> None:
    vectors = np.random.default_rng(0).normal(size=(4, 8))
    model = heads.attach(
        timm.create_model("test_resnet"), "ml_decoder", 4, vectors=vectors, query="text", pooling="shared"
    ).eval()
    model.head.relabel(vectors[:2])
    assert model(torch.rand(1, 3, 64, 64)).shape == (1, 2)


def test_what_cannot_work_is_said() -> None:
    with pytest.raises(ConfigError, match="no timm model"):
        heads.attach(nn.Linear(2, 2), "linear", 3)
    with pytest.raises(ConfigError, match="did you mean 'ml_decoder'"):
        heads.attach(timm.create_model("test_resnet"), "ml_decodr", 3)
    with pytest.raises(ConfigError, match="gruops'; did you mean 'groups'"):
        heads.attach(timm.create_model("test_resnet"), "ml_decoder", 3, gruops=2)
    with pytest.raises(ConfigError, match="num_labels"):
        heads.attach(timm.create_model("test_resnet"), "linear", 0)
    assert "ml_decoder" in heads.names()

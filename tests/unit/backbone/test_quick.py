"""Convolutions that train faster on a CPU are the same convolutions."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from manylabel.backbone import Backbone
from manylabel.backbone.quick import Pointwise, quicken
from manylabel.config import BackboneConfig


@pytest.mark.parametrize("stride", [1, 2, (1, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_pointwise_convolution_is_a_matrix_product(stride: int | tuple[int, int], bias: bool) -> None:
    torch.manual_seed(0)
    plain = nn.Conv2d(5, 7, 1, stride=stride, bias=bias)
    quick = copy.deepcopy(plain)
    quicken(quick)
    assert type(quick) is Pointwise
    x = torch.randn(3, 5, 8, 9)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    a, b = quick(ours.contiguous(memory_format=torch.channels_last)), plain(theirs)
    assert torch.allclose(a, b, atol=1e-6)
    a.pow(2).sum().backward()
    b.pow(2).sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-4)
    assert torch.allclose(quick.weight.grad, plain.weight.grad, atol=1e-3)
    assert list(quick.state_dict()) == list(plain.state_dict())


@pytest.mark.parametrize("name", ["test_efficientnet", "test_resnet", "test_convnext"])
def test_a_whole_backbone_trains_to_the_same_numbers(name: str) -> None:
    config = BackboneConfig(name=name, weights="none", freeze="full", batch_norm="fixed")
    torch.manual_seed(0)
    plain = Backbone(config).train()
    quick = copy.deepcopy(plain)
    quick.quicken()
    images = torch.rand(2, 3, 64, 64)
    for backbone in (plain, quick):
        backbone(images).final.pow(2).mean().backward()
    assert torch.allclose(quick(images).final, plain(images).final, atol=1e-4, rtol=1e-4)
    for (key, ours), theirs in zip(quick.named_parameters(), plain.parameters(), strict=True):
        if theirs.grad is not None:
            assert ours.grad is not None, key
            scale = float(theirs.grad.abs().max()) + 1e-8
            assert float((ours.grad - theirs.grad).abs().max()) / scale < 1e-2, key


def test_depthwise_convolutions_leave_mixed_precision() -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 6, 1))
    quicken(body)
    with torch.autocast("cpu", torch.bfloat16):
        middle = body[0](torch.randn(1, 4, 6, 6))
        assert middle.dtype == torch.float32
        assert body[1](middle).dtype == torch.bfloat16


def test_frozen_layers_stay_as_they_are() -> None:
    conv = nn.Conv2d(4, 6, 1).requires_grad_(False)
    quicken(conv)
    assert type(conv) is nn.Conv2d

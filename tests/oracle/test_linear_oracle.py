"""The linear head's attention over places, label by label."""

from __future__ import annotations

import math

import pytest
import torch

from manylabel.config import Part
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head import HEADS


@pytest.mark.parametrize(("share", "sharpness"), [(0.3, 1.0), (1.0, 4.0)])
def test_every_label_weighs_places_by_its_own_scores(share: float, sharpness: float) -> None:
    torch.manual_seed(0)
    options = {"attention": share, "sharpness": sharpness}
    head = HEADS.build(Part("linear", options), channels={"final": 6}, num_labels=3)
    torch.nn.init.normal_(head.classifier.weight)
    torch.nn.init.normal_(head.classifier.bias)
    x = torch.randn(2, 6, 3, 4)
    logits = head(Features({"final": x})).logits.detach()
    weight, bias = head.classifier.weight.detach(), head.classifier.bias.detach()
    for image in range(2):
        for label in range(3):
            scores = [float(weight[label] @ x[image, :, i, j] + bias[label]) for i in range(3) for j in range(4)]
            total = sum(math.exp(sharpness * s) for s in scores)
            focused = sum(math.exp(sharpness * s) / total * s for s in scores)
            expected = sum(scores) / len(scores) + share * focused
            assert float(logits[image, label]) == pytest.approx(expected, abs=1e-4)


def test_without_attention_means_are_enough() -> None:
    plain = HEADS.build(Part("linear"), channels={"final": 6}, num_labels=3)
    assert plain.pooled
    assert not HEADS.build(Part("linear", {"attention": 0.5}), channels={"final": 6}, num_labels=3).pooled
    x = torch.randn(2, 6, 3, 4)
    means = Features({"final": x.mean(dim=(2, 3), keepdim=True)})
    assert torch.allclose(plain(Features({"final": x})).logits, plain(means).logits, atol=1e-6)


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match=r"head\.attention"):
        HEADS.build(Part("linear", {"attention": -1}), channels={"final": 6}, num_labels=3)

"""Query2Label against a literal version: loops over images, labels, heads and tokens (ML-Decoder, Eq. 2; sine positions)."""

from __future__ import annotations

import copy
from typing import Any

import literal_attention as literal
import pytest
import torch
from torch import Tensor

from manylabel.config import Part
from manylabel.features import Features
from manylabel.head import HEADS
from manylabel.head.query2label import Query2Label

CHANNELS = {"stage4": 6, "final": 9}
SMALL: dict[str, Any] = {"dim": 16, "heads": 4, "hidden": 20, "dropout": 0.0}


def features() -> Features:
    generator = torch.Generator().manual_seed(7)
    sizes = {"stage4": (6, 4, 6), "final": (9, 2, 3)}
    return Features({name: torch.randn(2, *size, generator=generator) for name, size in sizes.items()})


def build(n: int, **options: Any) -> Query2Label:
    torch.manual_seed(0)
    head: Query2Label = HEADS.build(Part("query2label", SMALL | options), channels=CHANNELS, num_labels=n)
    with torch.no_grad():
        for parameter in head.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return head


def literal_logits(head: Query2Label, given: Features) -> Tensor:
    classifier = head.classifier
    rows = []
    for image in range(2):
        t = literal.query_transformer(head.transformer, head.options, given, image)
        rows.append(torch.stack([classifier.weight[n] @ t[n] + classifier.bias[n] for n in range(len(t))]))
    return torch.stack(rows)


VARIANTS: list[tuple[int, dict[str, Any]]] = [
    (5, {}),
    (1, {}),
    (5, {"encoder_layers": 0, "decoder_layers": 1}),
    (5, {"self_attention": True}),
    (4, {"self_attention": True, "encoder_layers": 0, "decoder_layers": 1}),
    (5, {"positions": False}),
    (5, {"decoder_norm": False}),
    (3, {"stages": ("stage4", "final")}),
    (3, {"stages": ("stage4", "final"), "earlier": "beside"}),
    (5, {"decoder_start": "queries", "self_attention": True}),
]


@pytest.mark.parametrize(("n", "options"), VARIANTS, ids=str)
class TestAgainstTheLiteralVersion:
    def test_logits(self, n: int, options: dict[str, Any]) -> None:
        head = build(n, **options).eval()
        expected = literal_logits(copy.deepcopy(head).double(), features())
        assert (head(features()).logits - expected).abs().max() < 1e-5

    def test_gradients(self, n: int, options: dict[str, Any]) -> None:
        head = build(n, **options)
        exact = copy.deepcopy(head).double()
        pull = torch.randn(2, n, generator=torch.Generator().manual_seed(5))
        (head(features()).logits * pull).sum().backward()
        (literal_logits(exact, features()) * pull).sum().backward()
        literal.assert_same_gradients(head, exact)

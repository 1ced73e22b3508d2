"""Query2Label against a literal version: loops over images, labels, heads and tokens (ML-Decoder, Eq. 2; sine positions)."""

from __future__ import annotations

import copy
import math
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


def literal_position(y: int, x: int, height: int, width: int, dim: int) -> Tensor:
    """Row first, then column; sine at even places, cosine at odd ones."""
    numbers = []
    for place, count in ((y, height), (x, width)):
        for j in range(dim // 2):
            angle = 2 * math.pi * (place + 1) / count / 10_000 ** (2 * (j // 2) / (dim // 2))
            numbers.append(math.sin(angle) if j % 2 == 0 else math.cos(angle))
    return torch.tensor(numbers, dtype=torch.float64)


def added(xs: list[Tensor], ys: list[Tensor]) -> list[Tensor]:
    return [x + y for x, y in zip(xs, ys, strict=True)]


def literal_logits(head: Query2Label, given: Features) -> Tensor:
    o, transformer = head.options, head.transformer
    rows = []
    for image in range(2):
        e = literal.tokens(transformer.tokens, given, image, relu=False)
        p = []
        for stage in o.stages:
            height, width = given.stages[stage].shape[-2:]
            p += [literal_position(y, x, height, width, o.dim) for y in range(height) for x in range(width)]
        if not o.positions:
            p = [torch.zeros_like(position) for position in p]
        for layer in transformer.encoder:
            looked = literal.attention(layer.attention, added(e, p), added(e, p), e)
            e = [literal.layer_norm(layer.norm1, x) for x in added(e, looked)]
            e = [literal.layer_norm(layer.norm2, x + literal.feed_forward(layer.feed_forward, x)) for x in e]
        q = list(transformer.queries.weight)
        t = [torch.zeros_like(query) for query in q]
        for layer in transformer.decoder:
            if o.self_attention:
                looked = literal.attention(layer.self_attention, added(t, q), added(t, q), t)
                t = [literal.layer_norm(layer.norm1, x) for x in added(t, looked)]
            looked = literal.attention(layer.attention, added(t, q), added(e, p), e)
            t = [literal.layer_norm(layer.norm2, x) for x in added(t, looked)]
            t = [literal.layer_norm(layer.norm3, x + literal.feed_forward(layer.feed_forward, x)) for x in t]
        classifier = head.classifier
        rows.append(torch.stack([classifier.weight[n] @ t[n] + classifier.bias[n] for n in range(len(t))]))
    return torch.stack(rows)


VARIANTS: list[tuple[int, dict[str, Any]]] = [
    (5, {}),
    (1, {}),
    (5, {"encoder_layers": 0, "decoder_layers": 1}),
    (5, {"self_attention": True}),
    (4, {"self_attention": True, "encoder_layers": 0, "decoder_layers": 1}),
    (5, {"positions": False}),
    (3, {"stages": ("stage4", "final")}),
]


@pytest.mark.parametrize(("n", "options"), VARIANTS, ids=str)
class TestAgainstTheLiteralVersion:
    def test_logits(self, n: int, options: dict[str, Any]) -> None:
        head = build(n, **options).eval()
        expected = literal_logits(copy.deepcopy(head).double(), features())
        assert (head(features()) - expected).abs().max() < 1e-5

    def test_gradients(self, n: int, options: dict[str, Any]) -> None:
        head = build(n, **options)
        exact = copy.deepcopy(head).double()
        pull = torch.randn(2, n, generator=torch.Generator().manual_seed(5))
        (head(features()) * pull).sum().backward()
        (literal_logits(exact, features()) * pull).sum().backward()
        literal.assert_same_gradients(head, exact)

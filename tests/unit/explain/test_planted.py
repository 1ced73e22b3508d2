"""Attention of every query head finds a label's sign that was planted at one place of the features."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from manylabel.config import Part
from manylabel.explain.attention import attention_grids
from manylabel.features import FINAL, Features
from manylabel.head import HEADS
from manylabel.model import answer_of
from manylabel.neck import NECKS

LABELS, CHANNELS, SIDE = 3, 16, 5


def planted(count: int, seed: int) -> tuple[Features, torch.Tensor, torch.Tensor]:
    """Noise with each label's own direction at one random place where it is there: features, targets, places."""
    generator = torch.Generator().manual_seed(seed)
    maps = 0.3 * torch.randn(count, CHANNELS, SIDE * SIDE, generator=generator)
    there = torch.rand(count, LABELS, generator=generator) < 0.5
    place = torch.stack([torch.randperm(SIDE * SIDE, generator=generator)[:LABELS] for _ in range(count)])
    for b in range(count):
        for n in range(LABELS):
            if there[b, n]:
                maps[b, 4 * n : 4 * n + 4, place[b, n]] += 2
    return Features({FINAL: maps.unflatten(2, (SIDE, SIDE))}), there.float(), place


@pytest.mark.parametrize("name", ["ml_decoder", "query2label", "hsq", "hsq_linear"])
def test_the_query_of_a_label_looks_at_its_sign(name: str) -> None:
    torch.manual_seed(0)
    options = {"dim": 32, "heads": 2, "hidden": 32, "dropout": 0.0}
    if name != "ml_decoder":
        options |= {"decoder_layers": 1, "encoder_layers": 0}
    head = HEADS.build(Part(name, options), channels={FINAL: CHANNELS}, num_labels=LABELS)
    optimiser = torch.optim.Adam(head.parameters(), 3e-3)
    for step in range(150):
        features, targets, _ = planted(32, step)
        loss = binary_cross_entropy_with_logits(head(features).logits, targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    features, targets, place = planted(100, 10_000)
    neck = NECKS.build("none", channels={FINAL: CHANNELS}, num_labels=LABELS)
    model = SimpleNamespace(head=head.eval(), answer=partial(answer_of, neck, head))
    columns = torch.arange(LABELS).expand(100, -1)
    grids = attention_grids(model, features, columns, [FINAL])[FINAL]  # type: ignore[arg-type]
    highest = grids.mean(dim=2).flatten(2).argmax(dim=2)  # [B, L]
    right = (highest == place)[targets.bool()].float().mean()
    assert right > 0.8  # 0.04 by guessing

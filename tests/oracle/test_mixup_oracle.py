"""Representation mixup against Eq. 2, 3, 5 and 6, number by number."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.config import Part
from manylabel.core.trace import Trace
from manylabel.features import Features
from manylabel.head import HEADS
from manylabel.model import answer_of
from manylabel.neck import NECKS, RepresentationMixup

CHANNELS = {"stage1": 3, "stage2": 5, "final": 7}


def _neck(labels: int = 4, **options: object) -> RepresentationMixup:
    return NECKS.build(Part("rm", options), channels=CHANNELS, num_labels=labels)


def _features(batch: int, size: int = 4, seed: int = 0) -> Features:
    g = torch.Generator().manual_seed(seed)
    sides = {"stage1": 2 * size, "stage2": size, "final": size}
    return Features({s: torch.randn(batch, c, sides[s], sides[s], generator=g) for s, c in CHANNELS.items()})


PUBLISHED: dict[str, Any] = {"summary": "mean", "normalise": False, "start": 0.0}


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _mean(stage: torch.Tensor, image: int, channel: int) -> float:
    places = [float(v) for v in stage[image, channel].flatten()]
    return sum(places) / len(places)


def _literal(
    neck: RepresentationMixup, features: Features, image: int, stage: str
) -> tuple[float, list[float], list[float]]:
    """α, ĥ and z of one image, from Eq. 2 and 6."""
    z = [_mean(features.final, image, c) for c in range(7)]
    a = float(neck.alpha.bias[0]) + sum(float(neck.alpha.weight[0, c]) * z[c] for c in range(7))
    pooled = [_mean(features.stages[stage], image, c) for c in range(CHANNELS[stage])]
    weight = neck.summarise[stage].mlp.weight
    hint = [_sigmoid(sum(float(weight[o, c]) * pooled[c] for c in range(CHANNELS[stage]))) for o in range(7)]
    return _sigmoid(a), hint, z


@settings(max_examples=20)
@given(st.sampled_from(["stage1", "stage2"]), st.integers(1, 3), st.integers(0, 99))
def test_as_published(stage: str, batch: int, seed: int) -> None:
    torch.manual_seed(seed)
    neck, features = _neck(stages=(stage,), **PUBLISHED).eval(), _features(batch, seed=seed)
    mixed = neck(features)[0][1].final.mean(dim=(2, 3))
    for image in range(batch):
        alpha, hint, z = _literal(neck, features, image, stage)
        expected = [alpha * h + (1 - alpha) * v for h, v in zip(hint, z, strict=True)]  # Eq. 5
        assert mixed[image].tolist() == pytest.approx(expected, abs=1e-5)
        trace = Trace(shares={})
        neck(features, trace)
        assert trace.shares is not None
        assert float(trace.shares[stage][image, 0]) == pytest.approx(alpha, abs=1e-6)


def test_mixing_means_is_mixing_maps() -> None:
    """A pooled head sees the same whether the cache holds maps or their means."""
    neck, features = _neck(stages=("stage1", "stage2"), normalise=True, start=0.3).eval(), _features(3)
    means = Features({s: m.mean(dim=(2, 3), keepdim=True) for s, m in features.stages.items()})
    assert torch.allclose(neck(features)[0][1].final.mean(dim=(2, 3)), neck(means)[0][1].final[:, :, 0, 0], atol=1e-6)


def test_pooling_of_tokens_in_one_dimension() -> None:
    neck, features = _neck(stages=("stage1",), **{**PUBLISHED, "summary": "pool1d"}), _features(2)
    hints = neck._hints(features)[0]
    tokens = features.tokens("stage1")  # [B, T, C]
    for image in range(2):
        flat = [float(v) for token in tokens[image] for v in token]
        width = len(flat) - 7 + 1
        expected = [sum(flat[i : i + width]) / width for i in range(7)]
        assert hints[image].tolist() == pytest.approx(expected, abs=1e-5)


def test_attention_over_places() -> None:
    torch.manual_seed(3)
    neck, features = _neck(stages=("stage2",), summary="attention", queries=2, activation="none"), _features(2)
    summary = neck.summarise["stage2"]
    torch.nn.init.normal_(summary.look.weight)
    hints = summary(features.stages["stage2"])
    tokens = features.tokens("stage2")
    for image in range(2):
        found: list[float] = []
        for query in range(2):
            scores = [float(token @ summary.look.weight[query, :, 0, 0]) for token in tokens[image]]
            total = sum(math.exp(s) for s in scores)
            weights = [math.exp(s) / total for s in scores]
            found += [sum(w * float(t[c]) for w, t in zip(weights, tokens[image], strict=True)) for c in range(5)]
        expected = [sum(float(summary.mlp.weight[o, i]) * v for i, v in enumerate(found)) for o in range(7)]
        assert hints[image].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("stages", [("stage1",), ("stage1", "stage2")])
def test_every_label_with_its_own_share_is_equation_5_for_a_linear_head(stages: tuple[str, ...]) -> None:
    torch.manual_seed(1)
    neck, features = _neck(stages=stages, share="label"), _features(3)
    torch.nn.init.normal_(neck.weight)
    head = HEADS.build(Part("linear"), channels=CHANNELS, num_labels=4)
    torch.nn.init.normal_(head.classifier.weight)
    torch.nn.init.normal_(head.classifier.bias)
    logits = answer_of(neck, head, features).logits
    z, hints = features.final.mean(dim=(2, 3)), neck._hints(features)
    for image in range(3):
        for label in range(4):
            alpha = _sigmoid(float(neck.alpha.weight[label] @ z[image] + neck.alpha.bias[label]))
            exps = [math.exp(float(v)) for v in neck.weight[label]]
            hint = sum(e / sum(exps) * h[image] for e, h in zip(exps, hints, strict=True))
            own = alpha * hint + (1 - alpha) * z[image]
            expected = float(head.classifier.weight[label] @ own + head.classifier.bias[label])
            assert float(logits[image, label]) == pytest.approx(expected, abs=1e-4)

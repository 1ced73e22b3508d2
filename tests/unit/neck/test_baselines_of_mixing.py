"""What section 2.2 of RM's paper names beside a learned α: fixed, drawn from Beta, and no mixture but concatenation."""

from __future__ import annotations

import pytest
import torch

from manylabel.config import Part
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.neck import NECKS, Neck

CHANNELS = {"stage1": 3, "stage2": 5, "final": 7}


def _neck(name: str, **options: object) -> Neck:
    neck: Neck = NECKS.build(Part(name, options), channels=CHANNELS, num_labels=4)
    return neck


def _features(batch: int) -> Features:
    generator = torch.Generator().manual_seed(1)
    return Features({name: torch.randn(batch, count, 4, 4, generator=generator) for name, count in CHANNELS.items()})


def _alpha(neck: Neck, features: Features) -> torch.Tensor:
    trace = Trace(shares={})
    neck(features, trace)
    assert trace.shares is not None
    return sum(trace.shares.values(), torch.zeros(1))


@pytest.mark.parametrize("training", [True, False])
def test_a_fixed_share_is_what_was_set(training: bool) -> None:
    neck = _neck("rm", stages=("stage1",), alpha="fixed", start=0.3, summary="mean", normalise=False).train(training)
    features = _features(5)
    assert torch.equal(_alpha(neck, features), torch.full((5, 1), 0.3))
    hint = torch.sigmoid(features.stages["stage1"].mean(dim=(2, 3)) @ neck.summarise["stage1"].mlp.weight.T)
    expected = 0.3 * hint[:, :, None, None] + 0.7 * features.final  # Eq. 4
    torch.testing.assert_close(neck(features)[0][1].final, expected)
    assert not any("alpha" in name for name, _ in neck.named_parameters())


def test_a_drawn_share_is_beta_in_training_and_its_mean_afterwards() -> None:
    neck, features = _neck("rm", alpha="beta", beta=2.0), _features(4000)
    torch.manual_seed(0)
    drawn = _alpha(neck.train(), features)
    assert drawn.shape == (4000, 1)
    assert float(drawn.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(drawn.var()) == pytest.approx(1 / (4 * (2 * 2 + 1)), abs=0.005)  # of Beta(b, b): 1 / (4 (2 b + 1))
    assert torch.equal(_alpha(neck.eval(), features), torch.full((4000, 1), 0.5))


def test_concatenation() -> None:
    neck, features = _neck("concat", stages=("stage1", "stage2")), _features(3)
    found = neck(features)[0][1].final
    assert neck.channels["final"] == found.shape[1] == 7 + 3 + 5
    assert torch.equal(found[:, :7], features.final)
    z = features.final.mean(dim=(2, 3))
    for image in range(3):
        hint = features.stages["stage2"][image].mean(dim=(1, 2))
        normal = (hint - hint.mean()) / (hint.var(correction=0) + 1e-5).sqrt()
        expected = normal * z[image].std() + z[image].mean()
        torch.testing.assert_close(found[image, 10:, 2, 3], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rm", {"alpha": "fixed", "start": 0.0}, r"neck\.start must be above 0 with neck\.alpha=fixed"),
        ("rm", {"alpha": "beta", "floor": 0.05}, r"neck\.floor must be 0 with neck\.alpha=beta"),
        ("rm", {"alpha": "beta", "beta": 0.0}, r"neck\.beta"),
        ("concat", {"stages": ()}, "one earlier stage"),
        ("concat", {"stages": ("final",)}, "stages before the final one"),
        ("concat", {"stages": ("stage2", "stage-1")}, "different stages"),
    ],
)
def test_settings_that_make_no_sense(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _neck(name, **options)

"""What every neck must hold, with every head."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from manylabel.config import Part, make_config
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head import HEADS, LabelKnowledge
from manylabel.mixing import mean_share
from manylabel.model import Model, answer_of
from manylabel.neck import NECKS, Neck

CHANNELS = {"stage1": 8, "stage2": 12, "final": 16}
SIDES = {"stage1": 8, "stage2": 4, "final": 4}
MIXUPS = [
    Part("rm", {}),
    Part("rm", {"stages": ("stage2",), "hidden": 6, "activation": "none"}),
    Part("rm", {"stages": ("stage1", "stage2"), "summary": "attention", "normalise": True, "start": 0.1}),
    Part("rm", {"stages": ("stage1", "stage2"), "share": "label", "start": 0.1}),
    Part("rm", {"summary": "pool1d"}),
    Part("rm", {"summary": "mean", "normalise": False, "start": 0.0}),
    Part("rm", {"alpha": "fixed", "start": 0.3}),
    Part("rm", {"alpha": "beta", "beta": 0.4, "share": "label"}),
]
VARIANTS = [*(Part(name) for name in NECKS.names() if name != "rm"), *MIXUPS]


def _neck(part: Part, labels: int = 5) -> Neck:
    torch.manual_seed(0)
    return NECKS.build(part, channels=CHANNELS, num_labels=labels)


def _features(batch: int = 3, dtype: torch.dtype = torch.float32) -> Features:
    g = torch.Generator().manual_seed(1)
    return Features({s: torch.randn(batch, c, SIDES[s], SIDES[s], generator=g).to(dtype) for s, c in CHANNELS.items()})


def _shares(neck: Neck, features: Features) -> dict[str, torch.Tensor]:
    trace = Trace(shares={})
    neck(features, trace)
    assert trace.shares is not None
    return trace.shares


def test_every_neck_is_covered() -> None:
    assert {part.name for part in VARIANTS} == set(NECKS.names())


@pytest.mark.parametrize("head", sorted(HEADS.names()))
@pytest.mark.parametrize("part", VARIANTS, ids=str)
def test_with_every_head_every_trained_parameter_gets_a_gradient(part: Part, head: str) -> None:
    neck = _neck(part).train()
    on_top = HEADS.build(Part(head), channels=neck.channels, num_labels=5).train()
    logits = answer_of(neck, on_top, _features()).logits
    assert logits.shape == (3, 5)
    logits.pow(2).sum().backward()
    idle = [name for name, p in neck.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    # a layer that begins at zero moves what follows it only after the first step
    assert [name for name in idle if ".mlp." not in name] == []


@pytest.mark.parametrize("part", VARIANTS, ids=str)
def test_deterministic_batch_invariant_and_stored_whole(part: Part) -> None:
    neck, features = _neck(part).eval(), _features()
    head = HEADS.build(Part("linear"), channels=neck.channels, num_labels=5).eval()
    whole = answer_of(neck, head, features).logits
    assert torch.equal(whole, answer_of(neck, head, features).logits)
    for i in range(3):
        alone = Features({s: m[i : i + 1] for s, m in features.stages.items()})
        assert torch.allclose(answer_of(neck, head, alone).logits, whole[i : i + 1], atol=1e-5)
    other = _neck(part).eval()
    with torch.no_grad():
        for p in other.parameters():
            p.add_(1)
    other.load_state_dict(load(io.BytesIO(save(neck.state_dict())).getvalue()))
    assert torch.equal(answer_of(other, head, features).logits, whole)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("part", VARIANTS, ids=str)
def test_finite_in_half_precision(part: Part, dtype: torch.dtype) -> None:
    neck = _neck(part).eval().to(dtype)
    head = HEADS.build(Part("linear"), channels=neck.channels, num_labels=5).eval().to(dtype)
    assert answer_of(neck, head, _features(dtype=dtype)).logits.isfinite().all()


@pytest.mark.parametrize("part", MIXUPS, ids=str)
def test_shares_are_shares(part: Part) -> None:
    shares = _shares(_neck(part), _features())
    assert list(shares) == list(part.options.get("stages", ("stage1",)))
    total = sum(shares.values())
    assert ((total >= 0) & (total <= 1)).all()
    assert total.shape in ((3, 1), (3, 5))


def test_a_small_start_begins_at_the_pretrained_feature() -> None:
    features = _features()
    neck = _neck(Part("rm", {"stages": ("stage1", "stage2"), "normalise": True, "start": 0.01}))
    change = (neck(features)[0][1].final - features.final).norm() / features.final.norm()
    assert change < 0.03
    assert all(torch.allclose(s, torch.tensor(0.005)) for s in _shares(neck, features).values())


def test_only_the_stages_whose_places_matter_are_kept_whole() -> None:
    def pooled(*settings: str) -> set[str]:
        given = ["backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", *settings]
        return set(Model(make_config(settings=given), 3).only.pooled)

    rm = ("neck.name=rm", "neck.stages=stage1,stage2", "neck.summary=mean")
    assert pooled(*rm) == {"stage1", "stage2", "final"}
    assert pooled(*rm, "neck.summary=attention") == {"final"}
    assert pooled(*rm, "head.name=ml_decoder") == {"stage1", "stage2"}
    assert pooled(*rm, "head.name=ml_decoder", "head.stages=stage2,final") == {"stage1"}
    assert pooled("head.name=ml_decoder") == set()
    assert pooled("head.name=ml_decoder", "head.stages=stage4") == set()  # its grid is measured by the final one's


def test_a_head_on_an_earlier_stage_alone_sees_it_whole() -> None:
    settings = ["backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64"]
    settings += ["head.name=ml_decoder", "head.dim=16", "head.heads=2", "head.hidden=16", "head.stages=stage4"]
    model = Model(make_config(settings=settings), 3).only.eval()
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(model(images).logits, model.answer(model.backbone(images)).logits)


def test_alpha_has_a_floor_and_keeps_its_small_digits() -> None:
    neck = _neck(Part("rm", {"stages": ("stage2",), "start": 0.3, "floor": 0.2})).eval()
    assert float(_shares(neck, _features())["stage2"].mean()) == pytest.approx(0.3, abs=1e-6)
    neck.alpha.bias.data.fill_(-50)
    assert float(_shares(neck, _features())["stage2"].min()) == pytest.approx(0.2, abs=1e-6)
    assert mean_share({"stage2": np.full((4, 1), 9.09e-10)}) == {"alpha": 9.09e-10}
    with pytest.raises(ConfigError, match=r"neck\.start must be 0, or above neck\.floor"):
        _neck(Part("rm", {"stages": ("stage2",), "start": 0.1, "floor": 0.2}))


def test_what_is_learned_for_each_label_does_not_go_with_new_labels() -> None:
    words = np.eye(3, 4, dtype=np.float32)
    settings = ["backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", "neck.name=rm"]
    settings += ["neck.share=label", "head.name=ml_decoder", "head.query=text", "head.pooling=shared"]
    with pytest.raises(ConfigError, match=r"neck\.share=label.*zero-shot"):
        Model(make_config(settings=settings), 3, knowledge=LabelKnowledge(vectors=words))


def test_clear_errors() -> None:
    with pytest.raises(ConfigError, match="different stages"):
        _neck(Part("rm", {"stages": ("stage2", "stage-1")}))
    with pytest.raises(ConfigError, match=r"neck.stages: the backbone has no stage 'stage9'.*did you mean"):
        _neck(Part("rm", {"stages": ("stage9",)}))
    with pytest.raises(ConfigError, match="stages before the final one"):
        _neck(Part("rm", {"stages": ("final",)}))
    with pytest.raises(ConfigError, match="cannot be pooled to 16"):
        _neck(Part("rm", {"summary": "pool1d"}))(Features({s: m[..., :1, :1] for s, m in _features().stages.items()}))
    with pytest.raises(ConfigError, match=r"neck\.start"):
        _neck(Part("rm", {"start": 1.0}))

"""The transformer with sparse experts as a backbone like any other: under every neck and head, frozen, cut, cached,
explained; detectors on either; and kinds of backbones that break their contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from explained import photos
from safetensors.torch import load_file
from torch import Tensor, nn

from manylabel import run
from manylabel.backbone import BODIES, Backbone
from manylabel.backbone.moe_vit import stage_ends
from manylabel.bundle import load_bundle
from manylabel.config import BackboneConfig, Config, make_config
from manylabel.core.trace import Trace
from manylabel.detect import DetectionTarget, Detector, DetectorOptions
from manylabel.error import ConfigError
from manylabel.explain import explain
from manylabel.features import FINAL
from manylabel.head import HEADS
from manylabel.inference.predictor import Predictor
from manylabel.model import Model

SMALL = {"size": "own", "layers": 4, "heads": 2, "width": 16, "hidden": 32, "patch": 8, "experts": {"count": 4}, "k": 2}
SET = [
    "backbone.name=moe_vit",
    "backbone.image_size=64",
    *(f"backbone.options.{key}={value}" for key, value in SMALL.items() if key != "experts"),
    "backbone.options.experts.count=4",
]
SCENES = ["data.scenes.train=24", "data.scenes.val=12", "data.scenes.size=64", "data.workers=0", "train.batch_size=8"]
HEAD = {"linear": []}
HEAD |= {name: ["head.dim=16", "head.heads=2", "head.hidden=16"] for name in HEADS.names() if name != "linear"}
NECKS = {"none": [], "rm": ["neck.name=rm", "neck.stages=stage1,stage3"]}


def config(*settings: str) -> Config:
    return make_config(None, [*SET, *settings])


def test_stages_lie_behind_each_quarter_of_the_blocks() -> None:
    assert stage_ends(12) == {"stage1": 3, "stage2": 6, "stage3": 9, "stage4": 12}
    assert stage_ends(6) == {"stage1": 2, "stage2": 3, "stage3": 5, "stage4": 6}
    assert stage_ends(2) == {"stage1": 1, "stage2": 1, "stage3": 2, "stage4": 2}
    backbone = Backbone(config("backbone.freeze=full").backbone).eval()
    backbone.select(backbone.channels)
    heard: dict[int, Tensor] = {}
    blocks: Any = backbone.body.vit.blocks
    for number, block in enumerate(blocks, start=1):
        block.register_forward_hook(lambda _m, _i, out, number=number: heard.__setitem__(number, out))
    with torch.no_grad():
        features = backbone(torch.rand(2, 3, 64, 64))
    assert list(features.stages) == ["stage1", "stage2", "stage3", "stage4", "final"]
    for stage, end in stage_ends(4).items():
        assert torch.equal(features.stages[stage], heard[end].permute(0, 3, 1, 2))
    final = backbone.body.vit.norm(heard[4]).permute(0, 3, 1, 2)
    torch.testing.assert_close(features.final, final)


@pytest.mark.parametrize("freeze", ["full", "partial", "frozen"])
@pytest.mark.parametrize("neck", NECKS)
@pytest.mark.parametrize("head", HEAD)
def test_it_carries_every_neck_and_head(head: str, neck: str, freeze: str) -> None:
    torch.manual_seed(0)
    settings = [f"head.name={head}", *HEAD[head], *NECKS[neck], f"backbone.freeze={freeze}", "backbone.weights=none"]
    model = Model(config(*settings), 5).only
    model.check()
    images = torch.rand(2, 3, 64, 64)
    model.train()
    given: Any = model.features(images) if freeze != "full" else images
    output = model(given)
    (output.logits.square().sum() + sum(output.costs.values())).backward()
    assert set(output.costs) == (set() if freeze == "frozen" else {"importance", "load"})
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert any(name.startswith("backbone.") for name in trained) == (freeze != "frozen")
    if freeze == "partial":
        assert not any(".blocks.0." in name for name in trained)
    model.eval()
    with torch.no_grad():
        whole, cached = model(images).logits, model(model.features(images)).logits
    torch.testing.assert_close(whole, cached, atol=1e-5, rtol=1e-5)


def test_costs_of_a_cut_are_of_what_lies_behind_it() -> None:
    torch.manual_seed(0)
    settings = ["backbone.freeze=partial", "backbone.weights=none", "backbone.trained_after=stage2"]
    model = Model(config(*settings, "backbone.options.experts.noise=0"), 5).only.train()
    images = torch.rand(2, 3, 64, 64)
    routes: dict[int, Any] = {}
    output = model(model.features(images), trace=Trace(routes=routes))
    from manylabel.expert import importance_loss

    assert sorted(routes) == [1, 3]
    expected = 0.005 * importance_loss(routes[3])  # of blocks 1 and 3, the first lies before the cut
    torch.testing.assert_close(output.costs["importance"], expected)


def test_a_run_saves_loads_predicts_explains(tmp_path: Path) -> None:
    settings = [*SET, *SCENES, "backbone.freeze=full", "head.name=hsq", *HEAD["hsq"], "head.stages=stage2,final"]
    found = run.train("scenes", out=tmp_path / "run", settings=[*settings, "train.epochs=2"])
    again, _ = run.evaluate(found.folder)
    assert again["mAP"] == pytest.approx(found.mAP, abs=1e-3)
    bundle = load_bundle(found.bundle)
    assert bundle.config.backbone.options["layers"] == 4
    predictor = Predictor(bundle)
    assert len(predictor.predict(photos(2))) == 2
    for method, stage in (("attention", None), ("grad_cam", "stage1"), ("eigen_cam", "stage3"), ("grad_cam", FINAL)):
        maps = explain(predictor, photos(2), [bundle.labels.names[0]], method, stage)
        assert all(np.isfinite(one.map).all() and one.map.shape == (60, 80) for one in maps)


def test_features_cached_at_its_cut_teach_it_as_pixels_do(tmp_path: Path) -> None:
    settings = [
        *SET,
        *SCENES,
        "backbone.freeze=partial",
        "backbone.weights=none",
        "train.epochs=1",
        "augment.flip=false",
    ]
    run.train("scenes", out=tmp_path / "cached", settings=[*settings, "train.cache=on"])
    run.train("scenes", out=tmp_path / "pixels", settings=[*settings, "train.cache=off"])
    cached, pixels = (load_file(tmp_path / name / "bundle" / "weights.safetensors") for name in ("cached", "pixels"))
    torch.testing.assert_close(cached, pixels, rtol=0, atol=1e-4)


def test_a_frozen_one_without_weights_is_refused_unless_said() -> None:
    for settings in (["backbone.freeze=frozen"], ["backbone.freeze=partial"], [*NECKS["rm"]]):
        with pytest.raises(ConfigError, match=r"moe_vit has no trained weights.*backbone.weights=none"):
            Model(config(*settings), 3)
        Model(config(*settings, "backbone.weights=none"), 3)
    Model(config("backbone.freeze=full"), 3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["backbone.options.layrs=3"], "layrs"),
        (["backbone.options.k=9"], r"backbone.options.k must be from 1 to experts.count=4"),
        (["backbone.options.width=15"], "multiple of the 2 heads"),
        (["backbone.name=test_resnet"], "backbone.options are for moe_vit; test_resnet takes none of"),
        (["backbone.name=moe_vitt"], "did you mean 'moe_vit'"),
    ],
)
def test_settings_that_cannot_be(settings: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        run.train("scenes", out=tmp_path / "run", settings=[*SET, *SCENES, *settings])


# --- detectors, and several tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options", "stride"), [("test_resnet", {}, 32), ("moe_vit", SMALL, 8)])
def test_a_detector_sits_on_either(name: str, options: dict[str, Any], stride: int) -> None:
    torch.manual_seed(0)
    given = BackboneConfig(name=name, weights="none", freeze="full", image_size=64, options=options)
    backbone = Backbone(given)
    few = DetectorOptions(width=16, levels=(1,), proposals=20, test_proposals=20, box_samples=16, anchor_samples=32)
    detector = Detector(few, channels=backbone.channels, num_labels=3, stride=backbone.stride)
    masks = torch.zeros(1, 64, 64, dtype=torch.bool)
    masks[0, 8:40, 8:40] = True
    target = DetectionTarget(torch.tensor([[8.0, 8.0, 40.0, 40.0]]), torch.tensor([1]), masks, torch.tensor([False]))
    features = backbone.train()(torch.rand(2, 3, 64, 64))
    output = detector.train()(features, [target, target])
    sum(output.losses.values()).backward()
    assert all(p.grad is not None for p in backbone.parameters() if p.requires_grad)
    with torch.no_grad():
        found = detector.eval()(backbone.eval()(torch.rand(2, 3, 64, 64))).answer
    assert len(found) == 2


def test_heads_of_several_tasks_see_the_stages_they_name() -> None:
    head = {"name": "query2label", "dim": 16, "heads": 2, "hidden": 16, "stages": ["stage2", "final"]}
    recipe = {
        "tasks": {
            "labels": {"data": "scenes", "image_size": 64, "head": head},
            "more": {"data": "scenes", "image_size": 64},
        },
        "backbone": {"name": "moe_vit", "weights": "none", "freeze": "full", "options": SMALL},
    }
    model = Model(make_config(recipe), {"labels": 5, "more": 3}).eval()
    with torch.no_grad():
        features = model.task("labels").features(torch.rand(1, 3, 64, 64))
        assert set(features.stages) == {"stage2", "final"}
        assert model(torch.rand(1, 3, 64, 64), "labels").logits.shape == (1, 5)
        assert model(torch.rand(1, 3, 64, 64), "more").logits.shape == (1, 3)


# --- kinds that break their contract ------------------------------------------------------------------------------------


class Mute(nn.Module):
    """Has nothing."""

    class Options:
        pass

    def __init__(self, options: Any, *, config: BackboneConfig, load_weights: bool) -> None:
        super().__init__()


class NoStages(Mute):
    """Tells stages without channels."""

    num_features = 3
    feature_info = [{"module": "x"}]
    pretrained_cfg = {"input_size": (3, 64, 64), "mean": (0.5,) * 3, "std": (0.5,) * 3}

    def forward_features(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(
    ("kind", "said"), [(Mute, "Mute.* has no num_features"), (NoStages, r"feature_info\[0\] needs num_chs")]
)
def test_a_kind_that_breaks_its_contract_is_named(kind: type, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BODIES._classes, "mine", kind)
    monkeypatch.setattr(BODIES, "options", lambda part: kind.Options())
    with pytest.raises(ConfigError, match=said):
        Backbone(BackboneConfig(name="mine", freeze="full"))

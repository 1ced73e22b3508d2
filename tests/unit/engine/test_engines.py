"""A whole model through each engine: its logits and its features are those of torch, for every kind of head and neck."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from explained import bundle, photos

from manylabel.bundle import TaskBundle
from manylabel.engine import export
from manylabel.engine.export import export_onnx, onnx_engine
from manylabel.engine.onnx import OnnxEngine
from manylabel.engine.outputs import PIXELS, FeatureOutputs, LogitOutputs, Outputs
from manylabel.engine.torch import TorchEngine
from manylabel.error import BundleError, ConfigError, EngineError
from manylabel.head import HEADS, LabelKnowledge
from manylabel.inference.predictor import Predictor

SMALL = ("head.dim=24", "head.heads=4", "head.hidden=20")
WORDS = LabelKnowledge(np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32))
KINDS: dict[str, tuple[str, ...]] = {
    **{name: (f"head.name={name}",) for name in HEADS.names()},
    "linear looking at places": ("head.name=linear", "head.attention=0.5"),
    "two stages": ("head.name=ml_decoder", *SMALL, "head.stages=stage-2,final"),
    "words": ("head.name=ml_decoder", *SMALL, "head.query=text"),
    "mixed": ("head.name=linear", "neck.name=rm", "neck.stages=stage-1"),
    "mixed for each label": ("head.name=linear", "neck.name=rm", "neck.stages=stage-1", "neck.share=label"),
    "half frozen": ("head.name=ml_decoder", *SMALL, "head.stages=stage-2,final", "backbone.freeze=partial"),
}


def _bundle(kind: str) -> TaskBundle:
    return bundle(*KINDS[kind], knowledge=WORDS)


def _pixels(given: TaskBundle, count: int) -> np.ndarray:
    prepared = Predictor(given).of().prepared
    return torch.stack([prepared(photo) for photo in photos(count)]).numpy()


QUICK = ("linear", "mixed for each label")  # an export takes seconds
EXPORTS = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in KINDS]


@pytest.mark.parametrize("kind", EXPORTS)
def test_onnx_gives_what_torch_gives(kind: str, tmp_path: Path) -> None:
    given = _bundle(kind)
    path, side = tmp_path / "model.onnx", given.preprocess.size
    logits, features = LogitOutputs(given.model), FeatureOutputs(given.model)
    assert export_onnx(logits, {PIXELS: torch.zeros(2, 3, side, side, dtype=torch.uint8)}, path) <= 1e-4
    kept = OnnxEngine(path)  # as another program opens it
    for outputs, other, limit in ((logits, kept, 1e-4), (features, onnx_engine(features, side), 1e-3)):
        plain = TorchEngine(outputs)
        for count in (1, 5):
            pixels = _pixels(given, count)
            ours, theirs = other(pixels), plain(pixels)
            assert list(ours) == list(theirs) == list(outputs.names)
            for name, values in theirs.items():
                assert values.dtype == ours[name].dtype == np.float32
                assert values.shape == ours[name].shape
                assert len(values) == count
                size = np.abs(values).max() if isinstance(outputs, FeatureOutputs) else 1
                assert np.abs(ours[name] - values).max() <= limit * size


@pytest.mark.parametrize("kind", KINDS)
def test_the_torch_engine_is_the_model_to_the_bit(kind: str) -> None:
    given = _bundle(kind)
    pixels = _pixels(given, 5)
    with torch.inference_mode():
        logits = given.model(torch.from_numpy(pixels)).logits.numpy()
        features = given.model.features(torch.from_numpy(pixels)).stages
    assert np.array_equal(TorchEngine(LogitOutputs(given.model))(pixels)["logits"], logits)
    found = TorchEngine(FeatureOutputs(given.model))(pixels)
    assert list(found) == list(features)
    for name, stage in features.items():  # laid out in another order, so not to the bit
        assert np.allclose(found[name], stage.numpy(), rtol=1e-4, atol=1e-5)


def test_predictions_of_either_engine_are_alike() -> None:
    given = _bundle("ml_decoder")
    other = Predictor(given, "cpu", engine=onnx_engine(LogitOutputs(given.model), given.preprocess.size))
    for ours, theirs in zip(other.predict(photos(5)), Predictor(given, "cpu").predict(photos(5)), strict=True):
        assert [entry.label for entry in ours.labels] == [entry.label for entry in theirs.labels]
        assert [e.score for e in ours.labels] == pytest.approx([e.score for e in theirs.labels], abs=1e-5)


def test_one_engine_serves_many_threads() -> None:
    given = _bundle("linear")
    pixels = _pixels(given, 4)
    for engine in (
        TorchEngine(LogitOutputs(given.model)),
        TorchEngine(FeatureOutputs(given.model)),
        onnx_engine(LogitOutputs(given.model), given.preprocess.size),
    ):
        alone = engine(pixels)
        with ThreadPoolExecutor(8) as threads:
            for found in threads.map(engine, [pixels] * 40):
                assert all(np.array_equal(found[name], alone[name]) for name in alone)


# --- what is not used ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_a_difference(value: float) -> None:
    given = _bundle("linear")
    right = {name: np.ones((2, 3), np.float32) for name in given.model.feature_names}
    wrong = {name: np.array([[1, value, 1], [1, 1, 1]], np.float32) for name in right}
    for outputs in (FeatureOutputs(given.model), LogitOutputs(given.model)):
        outputs.names = tuple(right)
        assert outputs.gap(right, right) == 0
        assert not outputs.gap(wrong, right) <= outputs.tolerance
        assert not outputs.gap(right, wrong) <= outputs.tolerance
        assert not outputs.gap(wrong, wrong) <= outputs.tolerance


def test_features_that_are_all_zero_are_equal_to_themselves() -> None:
    outputs = FeatureOutputs(_bundle("linear").model)
    zero = {name: np.zeros((2, 3), np.float32) for name in outputs.names}
    assert outputs.gap(zero, zero) == 0


def test_an_export_that_gives_other_logits_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = OnnxEngine.run
    monkeypatch.setattr(
        OnnxEngine, "run", lambda self, inputs: {name: value + 0.01 for name, value in right(self, inputs).items()}
    )
    given = _bundle("linear")
    example = torch.zeros(2, 3, given.preprocess.size, given.preprocess.size, dtype=torch.uint8)
    with pytest.raises(EngineError, match=r"onnxruntime gives logits that differ by 0\.01 from torch's: .* not kept"):
        export_onnx(LogitOutputs(given.model), {PIXELS: example}, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    class Sorted(Outputs):
        what = "numbers"
        names = ("numbers",)

        def forward(self, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
            x = inputs["x"]
            return (x + len(x.sum().item().hex()),)  # Python looks at the numbers

    with pytest.raises(EngineError, match=r"ONNX Runtime cannot compute these numbers \("):
        export_onnx(Sorted(), {"x": torch.ones(2, 3)}, tmp_path / "numbers.onnx")
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damage(path: Path, threads: int = 0) -> OnnxEngine:
        path.write_bytes(path.read_bytes()[:-100])
        return OnnxEngine(path, threads)

    monkeypatch.setattr(export, "OnnxEngine", damage)
    given = _bundle("linear")
    with pytest.raises(EngineError, match="ONNX Runtime cannot compute these logits"):
        onnx_engine(LogitOutputs(given.model), given.preprocess.size)


@pytest.mark.parametrize("package", ["onnxruntime", "onnxscript"])
def test_what_is_not_installed_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    given = _bundle("linear")
    wanted = {"onnxruntime": "onnxruntime", "onnxscript": '"manylabel[onnx]"'}[package]
    with pytest.raises(ConfigError, match=re.escape(f"{package} is not installed: pip install {wanted}")):
        onnx_engine(LogitOutputs(given.model), given.preprocess.size)
    if package == "onnxruntime":
        with pytest.raises(ConfigError, match="onnxruntime is not installed"):
            OnnxEngine(tmp_path / "model.onnx")


def test_logits_that_are_no_numbers_are_no_prediction() -> None:
    class Broken:
        name = "broken"

        def __call__(self, pixels: np.ndarray) -> dict[str, np.ndarray]:
            return {"logits": np.full((len(pixels), 6), np.nan, np.float32)}

    with pytest.raises(BundleError, match="no numbers"):
        Predictor(_bundle("linear"), "cpu", engine=Broken()).predict(photos(1))

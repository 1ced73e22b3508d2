"""Whole numbers in place of floats: within the limits on real images, or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
from net.kept_runs import ARCHIVE, unpack

import manylabel as ml
from manylabel.error import ConfigError, EngineError
from manylabel.exporting import export_run, proof
from manylabel.inference.exported_file import open_exported


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("kept")) / "runs"


HEADS = ["linear", "ml_decoder", "query2label", "hsq", "hsq_linear", "rm"]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_a_run_in_int8(name: str, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loose = proof.Limits(mean_ap=5.0, label_ap=20.0)  # networks of a few channels lose more than real ones
    monkeypatch.setitem(proof.LIMITS, ("plain", "int8"), loose)
    found = ml.export(kept / name, tmp_path / "small.onnx", to="int8")
    file = open_exported(found.file)
    assert file.told["precision"] == "int8"
    assert file.told["in_int8"] in export_run.CHOICES
    assert " train images of scenes" in file.told["calibrated_on"]
    assert file.told["float_images_per_second"] > 0
    kinds = {node.op_type for node in onnx.load(found.file).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds
    (proved,) = found.proofs.values()
    assert proved.lost_mean_ap is not None
    assert json.dumps(file.told["proof"])
    page = found.page.read_text()
    assert "In int8: " in page
    slower = proved.file_images_per_second <= file.told["float_images_per_second"]
    assert ("In int8 it is not faster than in float32" in page) is slower
    assert ml.Predictor.load(found.file).labels == ml.Predictor.load(kept / name).labels


def test_what_loses_too_much_is_not_left_behind(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(proof.LIMITS, ("plain", "int8"), proof.Limits(mean_ap=-200.0))
    monkeypatch.setattr(export_run, "CHOICES", {"convolutions": ("Conv",)})
    with pytest.raises(EngineError, match="nothing of this model can be computed in int8: convolutions: .*mAP loses"):
        ml.export(kept / "linear", tmp_path / "small.onnx", to="int8")
    assert not list(tmp_path.iterdir())


def test_what_it_needs(kept: Path, tmp_path: Path) -> None:
    bundle = shutil.copytree(kept / "linear" / "bundle", tmp_path / "bundle")
    with pytest.raises(ConfigError, match="ranges on training images of the run; there are only 32 generated images"):
        ml.export(bundle, tmp_path / "small.onnx", to="int8")
    with pytest.raises(ConfigError, match="--to int8 has the plain form only; leave --form full out"):
        ml.export(kept / "linear", tmp_path / "small.onnx", to="int8", form="full")
    assert {path.name for path in tmp_path.iterdir()} == {"bundle"}

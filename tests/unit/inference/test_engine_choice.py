"""An exported file by another engine: the same answers; `auto` measures once, and only what is equal."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import manylabel
from explained import bundle, photos

from manylabel.engine.openvino import OpenVinoEngine
from manylabel.error import ConfigError, EngineError
from manylabel.exporting.export_run import export_tasks
from manylabel.head import HEADS
from manylabel.inference import engine_choice
from manylabel.inference.engine_choice import with_engine
from manylabel.inference.exported_file import ExportedFile, open_exported
from manylabel.inference.predictor import Predictor


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_tasks({"labels": bundle("head.name=linear")}, tmp_path_factory.mktemp("mine") / "mine.onnx").file


@pytest.fixture
def file(mine: Path) -> ExportedFile:
    return open_exported(mine)


FUSED = ("query2label", "hsq", "hsq_linear")  # OpenVINO 2026.4 computes some of their attention otherwise
SLOW = [pytest.param(head, marks=pytest.mark.slow) for head in HEADS.names() if head != "linear"]


@pytest.mark.parametrize("head", ["linear", *SLOW])
@pytest.mark.parametrize("form", ["plain", pytest.param("full", marks=pytest.mark.slow)])
def test_openvino_gives_what_onnxruntime_gives(head: str, form: str, tmp_path: Path) -> None:
    path = export_tasks({"labels": bundle(f"head.name={head}")}, tmp_path / "mine.onnx", form).file
    if head in FUSED and _refused(path):
        return
    other = Predictor.load(path, engine="openvino")
    for ours, theirs in zip(other.predict(photos(5)), Predictor.load(path).predict(photos(5)), strict=True):
        scores = {entry.label: entry.score for entry in theirs.labels}
        assert {entry.label: entry.score for entry in ours.labels} == pytest.approx(scores, abs=1e-5)
        assert set(ours.present) == set(theirs.present)


def _refused(path: Path) -> bool:
    try:
        Predictor.load(path, engine="openvino")
    except EngineError as error:
        return "OpenVINO's logits differ" in str(error)
    return False


def test_what_differs_is_refused(file: ExportedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    run = OpenVinoEngine.run

    def wrong(self: OpenVinoEngine, *given: Any) -> dict[str, np.ndarray]:
        return {name: values + 0.01 for name, values in run(self, *given).items()}

    monkeypatch.setattr(OpenVinoEngine, "run", wrong)
    with pytest.raises(EngineError, match=r"differ by 0\.01 from those of ONNX Runtime"):
        with_engine(file, "openvino")
    assert with_engine(file, "auto").engine is file.engine


def test_it_serves_many_threads(file: ExportedFile) -> None:
    engine = with_engine(file, "openvino").engine
    pixels = np.random.default_rng(0).standard_normal((4, 3, 64, 64)).astype(np.float32)
    alone = engine.run({"images": pixels})
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(engine.run, [{"images": pixels}] * 40):
            assert np.array_equal(found["logits"], alone["logits"])


def test_auto_measures_once_and_remembers(file: ExportedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    monkeypatch.setattr(engine_choice, "_speeds", lambda _: measured.append(1) or {"onnx": 10.0, "openvino": 20.0})
    assert with_engine(file, "auto").engine.name == "openvino"
    assert with_engine(file, "auto").engine.name == "openvino"
    assert len(measured) == 1
    (note,) = Path(os.environ["MANYLABEL_CACHE"]).glob("engines/*.json")
    told = json.loads(note.read_text())
    assert told["images_per_second"] == {"onnx": 10.0, "openvino": 20.0}
    note.write_text(json.dumps({**told, "circumstances": {}}))  # of another machine
    with_engine(file, "auto")
    note.write_text("{")
    with_engine(file, "auto")
    assert len(measured) == 3
    monkeypatch.setattr(engine_choice, "_speeds", lambda _: {"onnx": 20.0, "openvino": 10.0})
    note.unlink()
    assert with_engine(file, "auto").engine.name == "onnxruntime"


def test_what_is_not_equal_is_not_measured(file: ExportedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_choice._speeds(file).keys() == {"onnx", "openvino"}
    right = OpenVinoEngine.run
    for by in (1e-3, float("nan")):
        monkeypatch.setattr(
            OpenVinoEngine,
            "run",
            lambda self, inputs, names=None, by=by: {k: v + by for k, v in right(self, inputs, names).items()},
        )
        assert engine_choice._speeds(file).keys() == {"onnx"}


def test_what_is_not_there(file: ExportedFile, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="cannot be computed by 'torch'; there is auto, onnx, openvino"):
        Predictor.load(file.path, engine="torch")
    with pytest.raises(ConfigError, match="is computed by torch; export it for engine 'onnx': manylabel export"):
        Predictor.load(trained, engine="onnx")
    photos(1)[0].save(tmp_path / "a.jpg")
    answer = manylabel("predict", file.path, tmp_path / "a.jpg", "--engine", "openvinno")
    assert (answer.returncode, "did you mean 'openvino'" in answer.stderr) == (2, True)
    (tmp_path / "noise.onnx").write_bytes(b"GIF89a" * 100)
    with pytest.raises(EngineError, match="no model that OpenVINO can open"):
        OpenVinoEngine(tmp_path / "noise.onnx")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ConfigError, match=r'openvino is not installed: pip install "manylabel\[openvino\]"'):
        Predictor.load(file.path, engine="openvino")
    monkeypatch.setattr(engine_choice, "find_spec", lambda _: None)
    assert with_engine(file, "auto").engine.name == "onnxruntime"

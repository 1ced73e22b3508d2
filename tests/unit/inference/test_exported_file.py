"""Files that are no export of ours, or were changed: a clear error, whatever is wrong with them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import manylabel
from explained import bundle, photos
from onnx import TensorProto, helper

from manylabel.error import BundleError, ConfigError, EngineError, ManylabelError
from manylabel.explain import explain
from manylabel.exporting.export_run import export_tasks
from manylabel.inference.exported_file import KEY, open_exported
from manylabel.inference.predictor import Predictor


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_tasks({"labels": bundle("head.name=linear")}, tmp_path_factory.mktemp("mine") / "mine.onnx").file


def edited(mine: Path, folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The file with other metadata: what `change` gives, or the object that it changed."""
    model = onnx.load(mine)
    told = json.loads(model.metadata_props[0].value)
    other = change(told)
    helper.set_model_props(model, {KEY: other if isinstance(other, str) else json.dumps(told)})
    onnx.save(model, folder / "other.onnx")
    return folder / "other.onnx"


def _label(told: dict[str, Any], number: int = 0) -> Any:
    return told["tasks"]["labels"]["labels"]["labels"][number]


def _task(told: dict[str, Any]) -> Any:
    return told["tasks"]["labels"]


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "cut": (lambda told: json.dumps(told)[:100], "cut off or no valid JSON"),
    "no object": (lambda told: "[1, 2]", "must be an object"),
    "deep": (lambda told: "[" * 5000, "JSON"),
    "another format": (lambda told: told.update(format=9), "format is 9, not 1"),
    "another form": (lambda told: told.update(form="whole"), "form must be plain or full"),
    "a form that does not fit": (lambda told: told.update(form="full"), "outputs.pixels must be a text, not None"),
    "another input": (lambda told: told.update(input="pixels"), "input is 'pixels', but the model takes images"),
    "no task": (lambda told: told.update(tasks={}), "tasks: there is none"),
    "tasks that are a list": (lambda told: told.update(tasks=[1]), "tasks must be an object"),
    "another kind": (lambda told: _task(told).update(kind="detection"), "kind must be multi_label or single_label"),
    "another output": (
        lambda told: _task(told)["outputs"].update(logits="x"),
        "logits is 'x', but the model gives logits",
    ),
    "NaN": (lambda told: _label(told).update(threshold=float("nan")), "no valid JSON .NaN"),
    "infinite": (lambda told: json.dumps(told).replace("0.5", "1e999", 1), "1e999 is no number"),
    "threshold above 1": (lambda told: _label(told).update(threshold=1.5), "threshold must be a score"),
    "threshold that is a text": (lambda told: _label(told).update(threshold="0.5"), "threshold must be a score"),
    "no threshold": (lambda told: _label(told).pop("threshold") and None, "threshold must be a score"),
    "a label less": (lambda told: _task(told)["labels"]["labels"].pop() and None, "has 5 labels, .* gives 6 logits"),
    "a label twice": (lambda told: _label(told).update(name="BEE"), "the same but for case"),
    "no labels": (lambda told: _task(told)["labels"].update(labels=[]), "has 0 labels"),
    "another activation": (lambda told: _task(told)["labels"].update(activation="tanh"), "sigmoid or softmax"),
    "no activation": (lambda told: _task(told)["labels"].pop("activation") and None, "sigmoid or softmax"),
    "another size": (lambda told: _task(told)["preprocess"].update(size=96), r"asks for pixels .*96, 96.*takes"),
    "a huge size": (lambda told: _task(told)["preprocess"].update(size=10**9), "1 to 4096"),
    "a mean that is no number": (lambda told: _task(told)["preprocess"].update(mean=["a", 0, 0]), "preprocess.mean"),
    "a std of 0": (lambda told: _task(told)["preprocess"].update(std=[0, 1, 1]), "preprocess.std"),
    "an unknown setting": (lambda told: _task(told)["preprocess"].update(sise=3), "preprocess.sise"),
    "a parent that is no label": (lambda told: _label(told).update(parents=["animal"]), "has the parent 'animal'"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_metadata_that_were_changed(what: str, mine: Path, tmp_path: Path) -> None:
    change, said = CHANGES[what]
    path = edited(mine, tmp_path, change)
    with pytest.raises(BundleError, match=said) as caught:
        open_exported(path)
    assert str(path) in str(caught.value)
    assert "export it again" in str(caught.value)


def _other_programs(path: Path) -> None:
    side = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [side], [out])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b""), "no model that ONNX Runtime can open"),
        (lambda path: path.write_bytes(b"GIF89a" * 100), "no model that ONNX Runtime can open"),
        (lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)), "no model that ONNX Runtime can open"),
        (_other_programs, "was not exported by manylabel.*manylabel export RUN --out FILE"),
        (os.mkfifo, "pipe or a device"),
    ],
    ids=["empty", "picture", "noise", "another program's", "pipe"],
)
def test_files_that_are_something_else(make: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    make(tmp_path / "mine.onnx")
    with pytest.raises(ManylabelError, match=said):
        Predictor.load(tmp_path / "mine.onnx")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut(share: float, mine: Path, tmp_path: Path) -> None:
    data = mine.read_bytes()
    (tmp_path / "mine.onnx").write_bytes(data[: int(share * len(data))])
    with pytest.raises((EngineError, BundleError), match="export it again|export the run itself"):
        Predictor.load(tmp_path / "mine.onnx")


def test_what_needs_the_weights_says_so(mine: Path) -> None:
    predictor = Predictor.load(mine)
    for ask in (
        lambda: predictor.bundle,
        lambda: predictor.model,
        lambda: predictor.for_labels(["cat"]),
        lambda: explain(predictor, photos(1)),
    ):
        with pytest.raises(BundleError, match="holds no weights that torch could use; give the run or bundle"):
            ask()
    with pytest.raises(ConfigError, match="brings its own engine"):
        Predictor.load(mine, "cuda")
    with pytest.raises(ConfigError, match="score is for objects"):
        predictor.predict(photos(1), score=0.3)
    with pytest.raises(ConfigError, match="no task 'lables' among labels; did you mean"):
        predictor.predict(photos(1), task="lables")


def test_the_command_names_the_file(mine: Path, tmp_path: Path) -> None:
    path = edited(mine, tmp_path, CHANGES["NaN"][0])
    photos(1)[0].save(tmp_path / "a.jpg")
    answer = manylabel("predict", path, tmp_path / "a.jpg")
    assert answer.returncode == 2
    assert "other.onnx" in answer.stderr
    assert "Traceback" not in answer.stderr

"""A program that cannot import torch predicts: the same picture, scores, thresholds and decisions as Predictor."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from explained import bundle, photos

from manylabel.data.decode import decode
from manylabel.data.given_image import read_images
from manylabel.engine.export import export_onnx
from manylabel.engine.outputs import PIXELS, LogitOutputs
from manylabel.inference.predictor import Predictor

PROGRAM = """
import json, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchvision", "timm", "accelerate", "safetensors"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, NoTorch())

from dataclasses import asdict
from pathlib import Path
import numpy as np
import manylabel
from manylabel.core.decision import scores_of
from manylabel.data.decode import decode
from manylabel.data.given_image import read_images
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.engine import Engine
from manylabel.engine.onnx import OnnxEngine
from manylabel.hierarchy import Hierarchy
from manylabel.inference.prediction import LabelScore, Prediction, prediction_of
from manylabel.labels import LabelSpace
from manylabel.metric import fit_thresholds
from manylabel.preprocess import Preprocess

folder = Path(sys.argv[1])
facts = json.loads((folder / "facts.json").read_text())
preprocess, labels = Preprocess(**facts["preprocess"]), LabelSpace(tuple(facts["labels"]))
transform, thresholds = evaluation_transform(preprocess), np.array(facts["thresholds"])
given = [folder / "photo.jpg", np.asarray(decode(folder / "photo.jpg")), folder / "missing.jpg"]
seen = [image for image in read_images(given, needed_side(preprocess))]
pixels = np.stack([transform(image.picture) for image in seen if image.picture is not None])
np.save(folder / "pixels.npy", pixels)
engine: Engine = OnnxEngine(folder / "model.onnx")
found = {}
for name, logits in (("saved", np.load(folder / "logits.npy")), ("onnx", engine(pixels)["logits"])):
    scores = iter(scores_of(logits, facts["activation"]))
    found[name] = [
        (Prediction(image.name, error=image.error) if image.picture is None else
         prediction_of(image.name, next(scores), labels.names, thresholds, facts["single"])).plain()
        for image in seen
    ]
assert manylabel.Prediction is Prediction
assert fit_thresholds(scores_of(logits, "sigmoid"), np.eye(2, 6, dtype=np.int8)).shape == (6,)
print(json.dumps(found))
"""


@pytest.mark.parametrize("kind", ["many labels", "one label"])
@pytest.mark.parametrize("resize", ["stretch", "pad", "crop"])
def test_the_same_predictions(kind: str, resize: str, tmp_path: Path) -> None:
    one = kind == "one label"
    given = bundle(f"backbone.resize={resize}", *(("kind=single_label", "loss.name=cross_entropy") if one else ()))
    given = replace(given, thresholds=np.linspace(0.1, 0.9, 6))
    predictor = Predictor(given, "cpu")
    photos(1, 300, 200)[0].save(tmp_path / "photo.jpg", quality=90)
    expected = _answers(predictor, tmp_path)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    pixels = np.load(tmp_path / "pixels.npy")
    assert np.array_equal(pixels, np.load(tmp_path / "expected.npy"))
    for name, limit in (("saved", 1e-6), ("onnx", 1e-5)):
        found = json.loads(done.stdout)[name]
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours["image"] == theirs["image"]
            assert ours.get("error") == theirs.get("error")
            for said, meant in zip(ours.get("labels", []), theirs.get("labels", []), strict=True):
                assert said.pop("score") == pytest.approx(meant["score"], abs=limit)
                assert said == {key: value for key, value in meant.items() if key != "score"}
    assert any(entry["above"] for entry in expected[0]["labels"])
    assert not all(entry["above"] for entry in expected[0]["labels"])


def _answers(predictor: Predictor, folder: Path) -> list[dict[str, object]]:
    """What Predictor says; and in the folder, what a program without torch needs to say the same."""
    given, preprocess = predictor.bundle, predictor.bundle.preprocess
    images = [folder / "photo.jpg", np.asarray(decode(folder / "photo.jpg")), folder / "missing.jpg"]
    prepared = predictor.of().prepared
    pixels = torch.stack(
        [prepared(image.picture) for image in read_images(images[:2], predictor.of().at_least) if image.picture]
    )
    np.save(folder / "expected.npy", pixels.numpy())
    np.save(folder / "logits.npy", predictor.of().engine(pixels.numpy())["logits"])
    example = torch.zeros(2, 3, preprocess.size, preprocess.size, dtype=torch.uint8)
    export_onnx(LogitOutputs(given.model), {PIXELS: example}, folder / "model.onnx")
    facts = {
        "labels": list(given.labels),
        "thresholds": given.thresholds.tolist(),
        "preprocess": vars(preprocess),
        "activation": given.task.activation,
        "single": given.task.one_label,
    }
    (folder / "facts.json").write_text(json.dumps(facts))
    return [prediction.plain() for prediction in predictor.predict(images)]

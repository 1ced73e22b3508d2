"""Where torch cannot be imported: an exported file predicts what its bundle does, and training says what to install."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import without_torch
from explained import bundle, photos
from net.kept_runs import ARCHIVE, unpack

from manylabel.exporting.export_run import export_tasks
from manylabel.inference.predictor import Predictor
from manylabel.storage.json_text import to_json


@pytest.mark.parametrize(
    ("kind", "resize", "form"),
    [
        ("many labels", "stretch", "plain"),
        ("one label", "crop", "full"),
        *(pytest.param("many labels", *rest, marks=pytest.mark.slow) for rest in (("pad", "plain"), ("pad", "full"))),
        *(
            pytest.param("one label", *rest, marks=pytest.mark.slow)
            for rest in (("crop", "plain"), ("stretch", "full"))
        ),
    ],
)
def test_the_same_predictions(kind: str, resize: str, form: str, tmp_path: Path) -> None:
    one = kind == "one label"
    given = bundle(f"backbone.resize={resize}", *(("kind=single_label", "loss.name=cross_entropy") if one else ()))
    given = replace(given, thresholds=np.linspace(0.1, 0.9, 6))
    photos(1, 300, 200)[0].save(tmp_path / "photo.jpg", quality=90)
    asked = [tmp_path / "photo.jpg", tmp_path / "missing.jpg"]
    expected = json.loads(to_json([answer.plain() for answer in Predictor(given, "cpu").predict(asked)]))
    file = export_tasks({"labels": given}, tmp_path / "mine.onnx", form).file
    done = without_torch.manylabel(tmp_path, "predict", file, *asked, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 2
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["image"] == theirs["image"]
        assert ours.get("error") == theirs.get("error")
        for said, meant in zip(ours.get("labels", []), theirs.get("labels", []), strict=True):
            assert said.pop("score") == pytest.approx(meant.pop("score"), abs=1e-5 if form == "plain" else 2e-3)
            assert said == meant
    assert any(entry["above"] for entry in expected[0]["labels"])
    assert not all(entry["above"] for entry in expected[0]["labels"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "photos", "--out", "new"),
        ("evaluate", "RUN"),
        ("predict", "RUN", "photos/images/photo000.jpg"),
        ("explain", "RUN", "photos/images/photo000.jpg"),
        ("export", "RUN", "--out", "mine.onnx"),
        ("heads",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_needs_torch_names_the_command_that_installs_it(
    arguments: tuple[str, ...], photos: Path, trained: Path
) -> None:
    done = without_torch.manylabel(photos.parent, *(str(trained) if each == "RUN" else each for each in arguments))
    assert done.returncode == 2
    assert 'which is not installed: pip install "manylabel[train]"' in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (photos.parent / "new").exists()


PROGRAM = """
import sys
import manylabel as ml
from manylabel.error import ConfigError

assert ml.Prediction and ml.ManylabelError and len(ml.load_data(sys.argv[1])) > 1
assert ml.Predictor.load(sys.argv[2]).predict(sys.argv[3])[0].labels
for name in ("train", "Bundle", "export"):
    try:
        getattr(ml, name)
    except ConfigError as error:
        assert f"manylabel.{name} needs " in str(error) and 'pip install "manylabel[train]"' in str(error)
    else:
        raise AssertionError(name)
assert not {"torch", "torchvision", "timm", "accelerate", "safetensors"} & sys.modules.keys()
print("done")
"""


def test_in_python(photos: Path, tmp_path: Path) -> None:
    file = export_tasks({"labels": bundle("head.name=linear")}, tmp_path / "mine.onnx").file
    (tmp_path / "program.py").write_text(PROGRAM)
    image = next((photos / "images").iterdir())
    done = without_torch.python(tmp_path, "program.py", photos, file, image)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_data_reports_and_comparisons(photos: Path, trained: Path, tmp_path: Path) -> None:
    kept = unpack(ARCHIVE, tmp_path / "kept") / "runs"
    for arguments in (
        ("data", "check", str(photos)),
        ("data", "formats"),
        ("data", "convert", str(photos), "coco.json", "--to", "coco"),
        ("report", str(trained), "--out", "report.html"),
        ("compare", str(kept / "linear"), str(kept / "full"), "--out", "compared", "--resamples", "100"),
        ("recipes",),
        ("--help",),
        ("export", "--help"),
    ):
        done = without_torch.manylabel(tmp_path, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    assert (tmp_path / "report.html").stat().st_size > 1000

"""The real FiftyOne reads what we write, and we read what it writes: the same labels, boxes and parts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import manylabel
from conftest import write_csv
from environments import needed
from PIL import Image
from read_back import boxes_of, labels_of, rows_of

pytestmark = [pytest.mark.foreign, pytest.mark.slow]
SIZE = 96, 72
SCRIPT = Path(__file__).with_name("in_fiftyone.py")
# labels (every box has one of them), boxes in shares of the image, part
TOLD: dict[str, tuple[list[str], list[tuple[str, list[float]]], str]] = {
    "a.jpg": (["dog", "beach"], [("dog", [0.25, 0.25, 0.5, 0.5])], "train"),
    "b c.jpg": (["traffic light"], [("traffic light", [0.125, 0.5, 0.25, 0.25])], "train"),
    "é.jpg": (["dog", "traffic light"], [("dog", [0, 0, 0.5, 1]), ("traffic light", [0.5, 0.25, 0.5, 0.5])], "val"),
    "d.jpg": ([], [], "train"),
    "e.jpg": (["beach"], [], "val"),
    "f.jpg": (["dog"], [("dog", [0, 0, 0.25, 0.25]), ("dog", [0.5, 0.5, 0.25, 0.25])], "train"),
}
LABELS = {name: set(labels) for name, (labels, _, _) in TOLD.items()}
BOXES = {
    name: sorted((label, [box[0] * 96, box[1] * 72, box[2] * 96, box[3] * 72]) for label, box in boxes)
    for name, (_, boxes, _) in TOLD.items()
}
BOXED = {name: {label for label, _ in boxes} for name, (_, boxes, _) in TOLD.items()}
PARTS = {name: part for name, (_, _, part) in TOLD.items()}


@pytest.fixture(scope="module")
def python() -> Path:
    return needed("fiftyone")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fiftyone") / "images"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in TOLD:
        Image.fromarray(rng.integers(0, 255, (SIZE[1], SIZE[0], 3)).astype(np.uint8)).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def exported(images: Path, python: Path) -> Path:
    """A folder with what FiftyOne writes, a folder for each format."""
    spec, out = images.parent / "spec.json", images.parent / "exported"
    told = {
        str(images / name): {"labels": labels, "boxes": boxes, "split": part}
        for name, (labels, boxes, part) in TOLD.items()
    }
    spec.write_text(json.dumps(told), encoding="utf-8")
    in_fiftyone(python, images.parent, "export", spec, out)
    return out


def in_fiftyone(python: Path, scratch: Path, *arguments: str | Path) -> Any:
    """What the script says there; its database lives in `scratch` and ends with it."""
    home = scratch / "home"
    own = {"HOME": home, "FIFTYONE_DATABASE_DIR": home / "db", "FIFTYONE_DEFAULT_DATASET_DIR": home / "data"}
    quiet = {"FIFTYONE_DO_NOT_TRACK": "true", "FIFTYONE_SHOW_PROGRESS_BARS": "false"}
    home.mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FIFTYONE_", "PYTHON"))}
    done = subprocess.run(
        [python, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        env=kept | {key: str(value) for key, value in own.items()} | quiet,
        cwd=scratch,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.strip().split("\n")[-1])


def test_it_loads_what_we_convert(images: Path, tmp_path: Path, python: Path) -> None:
    rows = [[name, "|".join(labels), part] for name, (labels, _, part) in TOLD.items()]
    write_csv(images / "labels.csv", rows, ["file_name", "labels", "split"])
    done = manylabel("data", "convert", images, tmp_path / "fo", "--to", "fiftyone")
    (images / "labels.csv").unlink()
    assert done.returncode == 0, done.stderr
    loaded = in_fiftyone(python, tmp_path, "load", tmp_path / "fo")
    assert {name: set(told["labels"]) for name, told in loaded["images"].items()} == LABELS
    assert {name: told["tags"] for name, told in loaded["images"].items()} == {n: [part] for n, part in PARTS.items()}
    assert all(told["there"] for told in loaded["images"].values())
    assert set(loaded["classes"]) == set().union(*LABELS.values())


def test_it_loads_boxes_that_we_convert(exported: Path, tmp_path: Path, python: Path) -> None:
    done = manylabel("data", "convert", exported / "coco", tmp_path / "fo", "--to", "fiftyone", "--images", "copy")
    assert done.returncode == 0, done.stderr
    loaded = in_fiftyone(python, tmp_path, "load", tmp_path / "fo")
    found = {name: sorted((label, box) for label, box in told["boxes"]) for name, told in loaded["images"].items()}
    for name, (_, boxes, _) in TOLD.items():
        assert [label for label, _ in found[name]] == [label for label, _ in sorted(boxes)]
        assert np.allclose([box for _, box in found[name]], [box for _, box in sorted(boxes)], atol=1e-6)


def test_we_read_its_own_format(exported: Path, tmp_path: Path) -> None:
    assert labels_of(exported / "samples", tmp_path) == LABELS
    assert {Path(row["file_name"]).name: row["split"] for row in rows_of(exported / "samples", tmp_path)} == PARTS
    _same_boxes(boxes_of(exported / "samples", tmp_path), 1e-6)


def test_we_read_its_folders_of_labels(exported: Path, tmp_path: Path) -> None:
    first = {name: {labels[0]} for name, (labels, _, _) in TOLD.items() if labels}
    assert labels_of(exported / "tree", tmp_path) == first


@pytest.mark.parametrize(("form", "tolerance"), [("coco", 1e-6), ("yolov4", 1e-3), ("yolov5", 1e-3), ("voc", 1.01)])
def test_we_read_its_boxes(exported: Path, tmp_path: Path, form: str, tolerance: float) -> None:
    """YOLO's boxes are shares with six places, those of VOC whole pixels."""
    assert labels_of(exported / form, tmp_path) == BOXED
    _same_boxes(boxes_of(exported / form, tmp_path), tolerance)
    if form == "yolov5":
        rows = rows_of(exported / form, tmp_path)
        assert {Path(row["file_name"]).name: row["split"] for row in rows} == PARTS


def _same_boxes(found: dict[str, list[tuple[str, list[float]]]], tolerance: float) -> None:
    assert found.keys() == BOXES.keys()
    for name, boxes in BOXES.items():
        assert [label for label, _ in found[name]] == [label for label, _ in boxes], name
        assert np.allclose([box for _, box in found[name]], [box for _, box in boxes], atol=tolerance), name

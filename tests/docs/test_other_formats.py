"""The lines of docs/data.md that make a CSV of formats we do not read: each makes one that we do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from doc_blocks import HERE, Block, blocks
from PIL import Image

from manylabel import load_data

PAGE = (HERE / "docs" / "data.md").read_text(encoding="utf-8")
SHOWN = [block for block in blocks(PAGE) if block.kind == "python" and "csv.writer" in block.text]
BOX = {"x": 8, "y": 8, "width": 4, "height": 4}


def _createml(folder: Path) -> Path:
    notes = [{"label": "cat", "coordinates": BOX}, {"label": "dog", "coordinates": BOX}]
    items = [{"image": "1.jpg", "annotations": notes}, {"image": "2.jpg", "annotations": notes[1:]}]
    _photos(folder / "train")
    (folder / "train" / "_annotations.createml.json").write_text(json.dumps(items), encoding="utf-8")
    return folder / "train" / "labels.csv"


def _automl(folder: Path) -> Path:
    rows = ["TRAIN,gs://b/x/1.jpg,cat,dog", "VALIDATION,gs://b/x/2.jpg,dog,0.1,0.1,,,0.5,0.5,,"]
    _photos(folder / "photos")
    (folder / "import.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder / "labels.csv"


def _visual_genome(folder: Path) -> Path:
    images = [{"image_id": 1, "objects": [{"names": ["Cat "]}, {"names": ["dog"]}, {"names": []}]}]
    images += [{"image_id": 2, "objects": [{"names": ["dog", "hound"]}]}]
    _photos(folder / "VG_100K")
    (folder / "objects.json").write_text(json.dumps(images), encoding="utf-8")
    return folder / "labels.csv"


def _photos(folder: Path) -> None:
    folder.mkdir()
    for name in "12":
        Image.new("RGB", (20, 20), (int(name) * 90, 0, 0)).save(folder / f"{name}.jpg")


@pytest.mark.parametrize(
    ("file", "write"), [("createml.json", _createml), ("import.csv", _automl), ("objects.json", _visual_genome)]
)
def test_the_csv_that_a_block_makes_is_read(file: str, write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    made = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in SHOWN if file in block.text]
    _run(block)
    table = load_data(made)
    assert table.labels.names == ("cat", "dog")
    assert table.matrix.tolist() == [[1, 1], [0, 1]]
    assert (table.split is None) == (file != "import.csv")


def _run(block: Block) -> None:
    exec(compile(block.text, f"docs/data.md, row {block.line}", "exec"), {})

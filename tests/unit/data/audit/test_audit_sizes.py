"""Images that are not as large as their label file says, and images that no label file mentions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audit_photos import photo, table_of, write
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.audit import audit, unlisted
from manylabel.data.objects import Objects
from manylabel.data.read import read_table
from manylabel.data.table import Table

BOXES = Objects(
    row=np.array([0]),
    label=np.array([0], np.int32),
    box=np.array([[0, 0, 20, 20]], np.float32),
    crowd=np.array([False]),
    difficult=np.array([False]),
    masks=(None,),
)


@pytest.fixture
def told(tmp_path: Path) -> Table:
    """Photos of 240 × 180 of which some are told to be otherwise; one is stored on its side."""
    names = ["good.png", "small.png", "untold.png", "half.png", "side.jpg", "broken.jpg"]
    folder = write(tmp_path / "told", {name: photo(i) for i, name in enumerate(names)})
    on_its_side = Image.Exif()
    on_its_side[0x0112] = 6  # orientation: to be turned by 90°
    photo(4).save(folder / "side.jpg", exif=on_its_side)
    (folder / "broken.jpg").write_bytes(b"")
    sizes = [(240, 180), (2400, 1800), (0, 0), (0, 180), (240, 180), (1, 1)]
    table = table_of(folder, {name: ["a", "b"][: 1 + i % 2] for i, name in enumerate(names)})
    return replace(table, sizes=np.array(sizes, np.int32), objects=BOXES)


def test_other_sizes_than_told_are_found_and_turned_ones_told_apart(told: Table) -> None:
    found = audit(told, workers=1, max_bad_share=1.0)
    assert found.wrong_sizes == {
        "count": 2,
        "turned": 1,
        "images": [
            {"image": "small.png", "told": [2400, 1800], "found": [240, 180], "turned": False},
            {"image": "side.jpg", "told": [240, 180], "found": [180, 240], "turned": True},
        ],
    }
    assert found.warnings[:2] == [
        "1 image has another size than the label file says (first: small.png is 240×180, not 2400×1800): "
        "boxes and masks will not fit",
        "1 image has width and height swapped (first: side.jpg is 180×240, not 240×180): "
        "boxes and masks are for the image before it was turned upright",
    ]


def test_without_boxes_a_turn_does_no_harm(told: Table) -> None:
    found = audit(replace(told, objects=None), workers=1, max_bad_share=1.0)
    assert found.wrong_sizes["turned"] == 1
    assert not any("swapped" in warning for warning in found.warnings)
    assert any("are these the images that were labelled?" in warning for warning in found.warnings)


def test_nothing_is_said_when_no_size_is_told(told: Table) -> None:
    found = audit(replace(told, sizes=None), workers=1, max_bad_share=1.0)
    assert found.wrong_sizes == {"count": 0, "turned": 0, "images": []}


def test_copies_merged_by_their_folders_are_not_missing_anywhere(tmp_path: Path) -> None:
    for i in range(6):
        write(tmp_path / "data" / ("cat" if i % 2 else "dog"), {f"{i}.png": photo(i)})
    same = (tmp_path / "data" / "cat" / "1.png").read_bytes()
    write(tmp_path / "data" / "dog", {"1.png": same})
    table = read_table(DataConfig(path=str(tmp_path / "data")))
    assert len(table) == 6
    found = audit(table, workers=1)
    assert found.unlisted == {"count": 0, "first": []}
    write(tmp_path / "data" / "dog", {"new.png": photo(99)})  # since the folders were read
    assert audit(table, workers=1).unlisted == {"count": 1, "first": ["dog/new.png"]}
    assert "1 image in the data folder is in no label file: dog/new.png" in audit(table, workers=1).warnings


def test_beyond_some_images_copies_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlisted, "COMPARED", 2)
    folder = write(tmp_path, {"0.png": photo(0), "1.png": photo(1), "2.png": photo(0), "3.png": photo(0)})
    write(folder, {"4.png": photo(0)})
    table = table_of(folder, {"0.png": ["a"], "1.png": []})
    assert audit(table, workers=1).unlisted == {"count": 0, "first": []}  # all that were compared are copies
    write(folder, {"2.png": photo(2)})
    assert audit(table, workers=1).unlisted == {"count": 2, "first": ["2.png", "4.png"]}

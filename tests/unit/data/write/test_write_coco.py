"""COCO written: read back equal in everything, and loaded by other tools."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_sample import SQUARE, put_small, small
from labelled_files import put_json, table_at, varied_table

from manylabel.config import DataConfig
from manylabel.data.convert import convert
from manylabel.data.mask import Polygons
from manylabel.data.table import Table
from manylabel.data.write.coco import write_coco
from manylabel.data.write.from_table import content_of
from manylabel.error import DataError


def same(a: Table, b: Table) -> None:
    """Equal in everything; rows may stand in another order, because each split has a file of its own."""
    assert sorted(a.keys) == sorted(b.keys)
    b = b.subset(np.array([b.keys.tolist().index(key) for key in a.keys]))
    assert a.labels.names == b.labels.names
    np.testing.assert_array_equal(a.matrix, b.matrix)
    for name in ("split", "groups"):
        ours, theirs = getattr(a, name), getattr(b, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or ours.tolist() == theirs.tolist(), name
    assert (a.objects is None) == (b.objects is None)
    if a.objects is not None and b.objects is not None:
        for name in ("row", "label", "box", "crowd", "difficult"):
            np.testing.assert_array_equal(getattr(a.objects, name), getattr(b.objects, name), err_msg=name)
        for ours, theirs in zip(a.objects.masks, b.objects.masks, strict=True):
            assert type(ours) is type(theirs)
            assert isinstance(ours, Polygons) or ours == theirs
            if isinstance(ours, Polygons) and isinstance(theirs, Polygons):
                assert [part.tolist() for part in ours.parts] == [part.tolist() for part in theirs.parts]


@pytest.mark.parametrize("splits", [True, False])
@pytest.mark.parametrize("mostly_unknown", [True, False])
@pytest.mark.parametrize("boxes", [True, False])
@pytest.mark.parametrize("name", ["out", "out/all.json"])
def test_what_is_written_is_read_back_equal(
    tmp_path: Path, splits: bool, mostly_unknown: bool, boxes: bool, name: str
) -> None:
    table = varied_table(tmp_path / "in", splits=splits, boxes=boxes, mostly_unknown=mostly_unknown)
    notes = write_coco(content_of(table, "copy"), tmp_path / name)
    same(table, table_at(tmp_path / "out"))
    assert any("labels have no box" in note for note in notes)
    written = sorted(file.name for file in (tmp_path / "out").rglob("*.json"))
    if name == "out" and splits:
        assert written == sorted(f"instances_{split}.json" for split in set(table.split.tolist()))  # type: ignore[union-attr]
    assert not list((tmp_path / "out").rglob("*.partial"))


def test_masks_crowds_and_ignored_objects_are_read_back_equal(tmp_path: Path) -> None:
    outline = [[4.07, 4.13, 14.31, 4.7, 14.123456, 14.2], [20, 20, 30, 20, 30, 29.5, 20, 29.5]]

    def change(data: dict[str, Any]) -> None:
        data["annotations"][2].update(ignore=1, bbox=[0.1, 0.2, 17.3, 21.7])
        data["annotations"][3].update(segmentation=outline)
        data["images"][0].update(group="street 5", split="train")
        data["images"][1].update(split="train", not_exhaustive_category_ids=[90])
        data["images"][2].update(split="test", group=5)

    source = put_small(tmp_path / "in", change)
    first = table_at(source)
    assert first.groups is not None
    assert first.groups.tolist() == ["street 5", "", "5"]
    done = convert(DataConfig(path=str(source)), tmp_path / "out", "coco", images="copy")
    assert done.images == 3
    same(first, table_at(tmp_path / "out"))
    train = json.loads((tmp_path / "out/annotations/instances_train.json").read_text())
    by_label = {entry["id"]: entry for entry in train["annotations"]}
    assert by_label[1]["segmentation"] == SQUARE
    assert by_label[1]["area"] == 100
    assert by_label[1]["bbox"] == [0.5, 1, 20.25, 8]
    assert by_label[3]["segmentation"][0][:5] == [pytest.approx(value, abs=1e-6) for value in outline[0][:5]]
    assert {image["file_name"]: (image["width"], image["height"]) for image in train["images"]} == {
        "a.jpg": (40, 30),
        "b.jpg": (40, 30),
    }


def test_other_tools_can_load_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pycocotools.coco import COCO

    source = put_small(tmp_path / "in")
    convert(DataConfig(path=str(source)), tmp_path / "out.json", "coco")
    coco = COCO(str(tmp_path / "out.json"))
    assert [entry["name"] for entry in coco.loadCats(coco.getCatIds())] == ["cat", "dog", "zebra"]
    assert len(coco.getAnnIds(catIds=coco.getCatIds(["cat"]))) == 2
    crowd = coco.loadAnns(coco.getAnnIds(iscrowd=True))[0]
    assert crowd["area"] == 20
    assert coco.annToMask(crowd).sum() == 20


def test_images_that_stay_are_found_with_the_note(tmp_path: Path) -> None:
    source = put_small(tmp_path / "in")
    done = convert(DataConfig(path=str(source)), tmp_path / "new" / "out.json", "coco")
    assert any(f"--set data.images={tmp_path / 'in'}" in note for note in done.notes)
    same(table_at(source), table_at(tmp_path / "new" / "out.json", images=str(tmp_path / "in")))


def test_a_present_label_of_ignored_objects_stays_present(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "in")
    assert table.objects is not None
    table = replace(table, objects=replace(table.objects, difficult=np.ones(3, bool)))
    write_coco(content_of(table, "copy"), tmp_path / "out")
    same(table, table_at(tmp_path / "out"))


def test_files_of_another_data_set_in_the_way_are_not_mixed_in(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "in")
    old = put_json(tmp_path / "out/annotations/instances_minival.json", small())
    with pytest.raises(DataError, match=r"already holds instances_minival\.json"):
        write_coco(content_of(table, "copy"), tmp_path / "out")
    assert [file.name for file in old.parent.iterdir()] == ["instances_minival.json"]

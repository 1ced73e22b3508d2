from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.read import find_format, read_table, visual_genome
from manylabel.data.read.visual_genome import FORMAT
from manylabel.data.table import Table
from manylabel.error import DataError

Item = dict[str, Any]


def _thing(name: str, *box: float) -> Item:
    sides = dict(zip("xywh", box, strict=True)) if box else {}
    return {"object_id": 7, "names": [name], "synsets": [f"{name}.n.01"], **sides}


def _items() -> list[Item]:
    first = {
        "image_id": 1,
        "objects": [_thing(" Tree", 1, 2, 10, 5), _thing("man", 0, 0, 4, 4), _thing("tree", 2, 2, 3, 3)],
    }
    return [first, {"image_id": 2, "objects": [_thing("sky")]}, {"image_id": 3, "objects": []}]


def _write(folder: Path, items: Any) -> None:
    (folder / "objects.json").write_text(json.dumps(items))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "vg"
    for name in ("VG_100K/1.jpg", "VG_100K/2.jpg", "VG_100K_2/3.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 10), (10, 20, 200)).save(root / name)
    sizes = [{"image_id": i, "width": 20, "height": 10, "url": "u", "coco_id": None} for i in (1, 2, 3)]
    (root / "image_data.json").write_text(json.dumps(sizes))
    _write(root, _items())
    return root


def _read(folder: Path, **changes: object) -> Table:
    return read_table(replace(DataConfig(path=str(folder)), **changes))  # type: ignore[arg-type]


def test_names_become_labels_and_boxes_stay(folder: Path) -> None:
    _, kind, reason = find_format(DataConfig(path=str(folder)))
    assert (kind.name, reason) == ("visual-genome", "objects.json with image_id and objects")
    table = _read(folder)
    assert table.keys.tolist() == ["VG_100K/1.jpg", "VG_100K/2.jpg", "VG_100K_2/3.jpg"]
    assert table.labels.names == ("man", "sky", "tree")
    assert table.matrix.tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert table.split is None
    assert table.objects is not None
    assert table.objects.row.tolist() == [0, 0, 0]
    assert table.objects.label.tolist() == [2, 0, 2]
    assert table.objects.box.tolist() == [[1, 2, 11, 7], [0, 0, 4, 4], [2, 2, 5, 5]]
    assert "1 objects have no box or one without area; their labels are kept" in table.notes
    assert not any("VG-500" in note for note in table.notes)


def test_the_file_can_be_named_and_images_be_elsewhere(folder: Path) -> None:
    elsewhere = folder.rename(folder.parent / "photos")
    named = folder.parent / "labels" / "my-objects.json"
    named.parent.mkdir()
    (elsewhere / "objects.json").rename(named)
    table = _read(named, images=str(elsewhere))
    assert table.labels.names == ("man", "sky", "tree")
    assert any("there is no image_data.json" in note for note in table.notes)


def test_the_first_version_calls_the_image_id_id(folder: Path) -> None:
    _write(folder, [{"id": item["image_id"], "objects": item["objects"]} for item in _items()])
    assert _read(folder).matrix.sum() == 3


def test_rare_names_are_left_out_and_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visual_genome, "MOST_LABELS", 2)
    items = _items()
    items[1]["objects"] += [_thing("tree"), _thing("zebra", 0, 0, 2, 2)]
    _write(folder, items)
    table = _read(folder)
    assert table.labels.names == ("man", "tree")  # man, sky and zebra are in one image each; man is first
    assert table.matrix.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert table.objects is not None
    assert len(table.objects) == 3
    assert any(
        "2 most frequent names, as in VG-500, each in 1 images at least; 2 rarer" in note for note in table.notes
    )


def test_many_names_are_cut_at_five_hundred(folder: Path) -> None:
    things = [_thing(f"thing {i}") for i in range(510)]
    _write(folder, [{"image_id": i, "objects": things[: 510 if i == 1 else 300]} for i in (1, 2, 3)])
    table = _read(folder)
    assert len(table.labels) == 500
    assert "thing 299" in table.labels
    assert any("10 rarer names are left out" in note for note in table.notes)


def test_objects_without_a_name_or_area(folder: Path) -> None:
    _write(folder, [{"image_id": 1, "objects": [{"names": []}, _thing("  "), _thing("man", 3, 3, 0, 5)]}])
    table = _read(folder)
    assert table.labels.names == ("man",)
    assert table.objects is None
    assert "2 objects without a name are left out" in table.notes


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"image_id": "one", "objects": []}, r"objects.json, item 2: the image_id must be a whole number, not 'one'"),
        ({"objects": []}, r"objects.json, item 2: the image_id must be a whole number, not None"),
        ("what", r"objects.json, item 2: the image_id"),
        ({"image_id": 2}, r"objects.json, image_id 2: 'objects' must be a list"),
        ({"image_id": 2, "objects": ["dog"]}, r"objects.json, image_id 2: 'names' must be a list of texts"),
        (
            {"image_id": 2, "objects": [{"object_id": 9, "names": "dog"}]},
            r"objects.json, image_id 2, object_id 9: 'names' must be a list of texts, not 'dog'",
        ),
        (
            {"image_id": 2, "objects": [_thing("dog", 1, 2, 3, 4) | {"w": "3"}]},
            r"image_id 2, object_id 7: w must be a number of pixels, not '3'",
        ),
        (
            {"image_id": 2, "objects": [{"names": ["dog"], "x": 1}]},
            r"image_id 2: y must be a number of pixels, not None",
        ),
        (
            {"image_id": 2, "objects": [_thing("dog", 1, 2, 300, 4)]},
            r"objects.json, image_id 2: the box of 'dog' from \(1, 2\) to \(301, 6\) is outside its image of 20×10",
        ),
        ({"image_id": 99, "objects": []}, r"objects.json, image_id 99: image_data.json does not know this image"),
        ({"image_id": 1, "objects": []}, r"objects.json, image_id 1: 'VG_100K/1.jpg' already stands in image_id 1"),
        ({"image_id": 2, "objects": [_thing("<b>")]}, r"label '<b>' looks like markup"),
    ],
)
def test_bad_items_name_file_and_place(folder: Path, item: Any, message: str) -> None:
    _write(folder, [_items()[0], item])
    with pytest.raises(DataError, match=message):
        _read(folder)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"image_id": None, "width": 2, "height": 2}, r"image_data.json, item 1: the image_id must be a whole number"),
        ({"image_id": 1, "width": 0, "height": 2}, r"image_data.json, image_id 1: width 0 and height 2 must be pixels"),
    ],
)
def test_bad_sizes(folder: Path, item: Item, message: str) -> None:
    (folder / "image_data.json").write_text(json.dumps([item]))
    with pytest.raises(DataError, match=message):
        _read(folder)


def test_an_image_that_is_not_there(folder: Path) -> None:
    (folder / "VG_100K" / "2.jpg").unlink()
    with pytest.raises(DataError, match=r"objects.json, image_id 2: '2.jpg' is not there"):
        _read(folder)
    assert len(_read(folder, missing="drop")) == 2


def test_files_that_are_cut_off_or_something_else(folder: Path) -> None:
    path = folder / "objects.json"
    path.write_text(json.dumps(_items())[:-30])
    with pytest.raises(DataError, match=r"objects.json is cut off or no JSON"):
        _read(folder)
    path.write_text('{"image_id": 1}')
    with pytest.raises(DataError, match=r"objects.json: expected a list of images at the top"):
        _read(folder, format="visual-genome")
    path.write_text("[]")
    with pytest.raises(DataError, match=r"objects.json: no image has a label"):
        _read(folder, format="visual-genome")
    path.unlink()
    with pytest.raises(DataError, match=r"cannot read .*objects.json"):
        FORMAT.open(folder, DataConfig(path=str(folder)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[1",
        '[{"image_id": "1", "objects": []}]',
        '[{"image_id": 1, "annotations": []}]',
        '[{"image_id": 1, "objects": [{"name": "x"}]}]',
    ],
)
def test_others_are_not_claimed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "objects.json"
    path.write_text(text)
    assert FORMAT.sniff(path) == ""
    assert FORMAT.sniff(tmp_path) == ""
    assert FORMAT.sniff(tmp_path / "nowhere") == ""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labelled_files import boxes_of, put_images, put_json, table_at

from manylabel.error import DataError


def _box(label: str, *numbers: float) -> dict[str, Any]:
    return {"label": label, "coordinates": dict(zip(("x", "y", "width", "height"), numbers, strict=True))}


def test_boxes_are_given_by_their_centre(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "b.jpg")
    items = [
        {
            "image": "a.jpg",
            "annotations": [_box("cat", 10, 10, 8, 4), _box("dog", 20, 15, 40, 30), _box("cat", 5, 5, 2, 2)],
        },
        {"image": "b.jpg", "annotations": []},
    ]
    put_json(tmp_path / "annotations.json", items)
    table = table_at(tmp_path)
    assert any("CreateML" in note for note in table.notes)
    assert table.labels.names == ("cat", "dog")
    assert table.matrix.tolist() == [[1, 1], [0, 0]]
    boxes = [("a.jpg", "cat", [6, 8, 14, 12]), ("a.jpg", "dog", [0, 0, 40, 30]), ("a.jpg", "cat", [4, 4, 6, 6])]
    assert boxes_of(table) == boxes


def test_roboflow_folders_are_splits(tmp_path: Path) -> None:
    for split, label in (("train", "x"), ("valid", "y"), ("test", "x")):
        put_images(tmp_path, f"{split}/a.jpg")
        put_json(
            tmp_path / split / "_annotations.createml.json",
            [{"image": "a.jpg", "annotations": [_box(label, 9, 9, 4, 4)]}],
        )
    table = table_at(tmp_path)
    assert table.split is not None
    found = dict(zip(table.keys.tolist(), table.split.tolist(), strict=True))
    assert found == {"test/a.jpg": "test", "train/a.jpg": "train", "valid/a.jpg": "val"}
    assert table.matrix[table.keys.tolist().index("valid/a.jpg")].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"image": "a.jpg", "annotation": "x"}, {"image": "b.jpg", "annotation": "y"}),
        (
            {"imagefilename": "a.jpg", "annotation": [{"label": "x"}]},
            {"imagefilename": "b.jpg", "annotation": [{"label": "y"}]},
        ),
        ({"image": "images/a.jpg", "labels": ["x"]}, {"image": "images/b.jpg", "labels": ["y"]}),
    ],
)
def test_labels_of_whole_images(tmp_path: Path, first: dict[str, Any], second: dict[str, Any]) -> None:
    put_images(tmp_path, "images/a.jpg", "images/b.jpg")
    table = table_at(put_json(tmp_path / "labels.json", [first, second]))
    assert table.keys.tolist() == ["images/a.jpg", "images/b.jpg"]
    assert table.matrix.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"image": "a.jpg"}, r"l\.json, item 2 \(a\.jpg\): neither 'annotations' nor 'annotation'"),
        ({"image": "", "annotations": []}, r"l\.json, item 2: no file name in 'image'"),
        ({"image": "a.jpg", "annotations": [{"coordinates": {}}]}, r"item 2 \(a\.jpg\), annotation 1: no 'label'"),
        (
            {"image": "a.jpg", "annotations": [{"label": "x", "coordinates": {"x": 1}}]},
            r"annotation 1, coordinates.* is not 4 numbers",
        ),
        ({"image": "a.jpg", "annotations": [_box("x", 3, 3, -1, 2)]}, r"annotation 1: a width of -1"),
        ({"image": "../../a.jpg", "annotations": []}, r"item 2 .*: '\.\./\.\./a\.jpg' leads out"),
        ("a.jpg", r"l\.json, item 2: 'a\.jpg' is no object"),
    ],
)
def test_errors_name_the_item(tmp_path: Path, item: Any, message: str) -> None:
    put_images(tmp_path, "z.jpg")
    path = put_json(tmp_path / "l.json", [{"image": "z.jpg", "annotations": [_box("x", 5, 5, 2, 2)]}, item])
    with pytest.raises(DataError, match=message):
        table_at(path)


def test_cut_off(tmp_path: Path) -> None:
    put_images(tmp_path, "z.jpg")
    path = put_json(tmp_path / "l.json", [{"image": "z.jpg", "annotations": [_box("x", 5, 5, 2, 2)]}] * 3)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match=r"l\.json is cut off"):
        table_at(path)


def test_an_image_of_another_split_is_not_taken(tmp_path: Path) -> None:
    put_images(tmp_path, "train/a.jpg", "valid/b.jpg")
    put_json(tmp_path / "train" / "_annotations.createml.json", [{"image": "b.jpg", "annotations": []}])
    put_json(
        tmp_path / "valid" / "_annotations.createml.json",
        [{"image": "b.jpg", "annotations": [_box("x", 9, 9, 4, 4)]}],
    )
    with pytest.raises(DataError, match=r"train/_annotations.*'train/b\.jpg' is not there"):
        table_at(tmp_path)

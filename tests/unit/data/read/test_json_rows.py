from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from labelled_files import boxes_of, put_images, put_json, table_at

from manylabel.data.read import FORMATS
from manylabel.error import DataError
from manylabel.labels import UNKNOWN

ROWS = [
    {"file_name": "a.jpg", "labels": ["cat", "bus, red"], "split": "train"},
    {"file_name": "b.jpg", "labels": [], "split": "valid"},
    {"file_name": "c.jpg", "labels": ["dog"], "split": "test"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_images(tmp_path / "data", "photos/a.jpg", "photos/b.jpg", "photos/c.jpg")


def _sniffed(path: Path) -> str:
    return FORMATS["json"].sniff(path)


def test_a_list_of_rows(folder: Path) -> None:
    put_json(folder / "anything.json", ROWS)
    table = table_at(folder)
    assert table.notes[0].startswith("read as JSON (a list of rows)")
    assert table.labels.names == ("bus, red", "cat", "dog")
    assert table.matrix.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val", "test"]
    assert "images are in photos/" in table.notes


@pytest.mark.parametrize("field", ["images", "data", "annotations", "samples", "items"])
def test_rows_inside_an_object(folder: Path, field: str) -> None:
    value = {"info": {"version": 1, "items": 3}, "names": ["cat", {"x": []}], field: ROWS, "after": [1]}
    table = table_at(put_json(folder / "l.json", value))
    assert table.notes[0].startswith(f"read as JSON (rows in '{field}')")
    assert table.matrix.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_a_mapping_of_lists_texts_and_objects(folder: Path) -> None:
    value: dict[str, Any] = {"a.jpg": ["cat", "dog"], "b.jpg": "cat", "c.jpg": [], "d.jpg": None}
    put_images(folder, "photos/d.jpg")
    table = table_at(put_json(folder / "l.json", value))
    assert any("1 images have no field with labels" in note for note in table.notes)
    assert table.notes[0].startswith("read as JSON (images and their labels)")
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.matrix.tolist() == [[1, 1], [1, 0], [0, 0]]
    value = {
        "a.jpg": {"labels": ["cat"], "split": "train", "group": "g"},
        "b.jpg": {"labels": [], "split": "val", "unknown_labels": ["cat"]},
        "photos/c.jpg": {"labels": ["dog"], "split": "val"},
    }
    put_images(folder, "a.jpg", "b.jpg")
    table = table_at(put_json(folder / "l.json", value))
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "photos/c.jpg"]
    assert table.matrix.tolist() == [[1, 0], [UNKNOWN, 0], [0, 1]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val", "val"]
    assert table.groups is not None
    assert table.groups.tolist() == ["g", "", ""]


def test_a_mapping_with_a_field_per_label(folder: Path) -> None:
    value = {"a.jpg": {"cat": 1, "dog": 0}, "b.jpg": {"cat": None, "dog": True}, "c.jpg": {"cat": 0, "dog": 0}}
    table = table_at(put_json(folder / "l.json", value))
    assert table.labels.names == ("cat", "dog")
    assert table.matrix.tolist() == [[1, 0], [UNKNOWN, 1], [0, 0]]


def test_boxes_and_a_byte_order_mark(folder: Path) -> None:
    rows = [{"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 10, 20]], "categories": ["cat"]}}]
    (folder / "l.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(rows).encode())
    assert boxes_of(table_at(folder / "l.json")) == [("a.jpg", "cat", [1, 2, 11, 22])]
    (folder / "l.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"a.jpg": "cat"}).encode())
    assert table_at(folder / "l.json").matrix.tolist() == [[1]]


@pytest.mark.parametrize(
    "value",
    [
        {"name": "site", "version": "1.0.0", "files": ["a.jpg"], "dependencies": {"left": "1"}},
        {"compilerOptions": {"paths": {"a.jpg": ["b"]}}},
        {"data": {"file_name": "a.jpg"}, "items": 3},
        {"items": [{"colour": "red", "labels": ["x"]}]},
        [{"id": 1, "name": "shop", "labels": ["x"]}],
        ["a.jpg", "b.jpg"],
        [[{"file_name": "a.jpg"}]],
        [],
        {},
        "a.jpg",
    ],
)
def test_other_json_is_not_claimed(tmp_path: Path, value: Any) -> None:
    assert _sniffed(put_json(tmp_path / "package.json", value)) == ""


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe{", b"{", b"[", b'{"images": [', b'[{"file_name": "a.jpg"', b"\0" * 99]
)
def test_broken_files_are_not_claimed_and_said_when_forced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "l.json"
    path.write_bytes(content)
    assert _sniffed(path) == ""
    with pytest.raises(DataError, match=r"l\.json (is cut off|is not valid|holds no rows)"):
        table_at(path, format="json")


def test_more_specific_formats_come_first(folder: Path) -> None:
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 30}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    assert table_at(put_json(folder / "l.json", coco)).notes[0].startswith("read as COCO")
    tasks = [{"data": {"image": "a.jpg"}, "annotations": [{"result": []}]}]
    kinds = list(FORMATS.values())
    path = put_json(folder / "l.json", tasks)
    assert next(kind.name for kind in kinds if kind.sniff(path)) == "label-studio"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([*ROWS, "d.jpg"], r"l\.json, item 4: it is no object"),
        ([ROWS[0], {"file_name": "", "labels": []}], r"l\.json, item 2: field 'file_name' is missing or blank"),
        ([ROWS[0], {**ROWS[1], "labels": [{"x": 1}]}], r"l\.json, item 2, field 'labels': .* is no label name"),
        ({"images": [ROWS[0], {"file_name": 7, "labels": []}]}, r"l\.json, item 2: field 'file_name' is 7"),
        ({"a.jpg": ["x"], "b.jpg": [1, 0, 1]}, r"l\.json, entry 'b\.jpg', field 'labels': .* looks like 0 and 1"),
        ({"a.jpg": ["x"], "nothing": ["x"]}, r"l\.json, entry 'nothing': 'nothing' is not there"),
        ({"a.jpg": ["x"], "../../../b.jpg": ["x"]}, r"entry '\.\./\.\./\.\./b\.jpg': .* leads out"),
        ({"a.jpg": {"caption": "nice"}}, r"l\.json has no field with labels"),
        ([ROWS[0], {**ROWS[1], "split": "tests"}], r"l\.json, item 2: split 'tests' is none we know"),
    ],
)
def test_errors_name_file_and_entry(folder: Path, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        table_at(put_json(folder / "l.json", value))


def test_an_image_twice_in_a_mapping(folder: Path) -> None:
    (folder / "l.json").write_text('{"a.jpg": ["x"], "b.jpg": ["y"], "a.jpg": ["y"]}')
    with pytest.raises(DataError, match=r"entry 'a\.jpg': 'a\.jpg' already stands"):
        table_at(folder / "l.json")
    table = table_at(folder / "l.json", duplicates="merge")
    assert table.matrix.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("value", [ROWS, {"samples": ROWS}, {"a.jpg": ["x"], "b.jpg": ["y"]}])
def test_cut_off(folder: Path, value: Any) -> None:
    path = put_json(folder / "l.json", value)
    path.write_text(path.read_text()[:-4])
    with pytest.raises(DataError, match=r"l\.json is cut off"):
        table_at(path)


def test_text_that_is_not_utf8(folder: Path) -> None:
    (folder / "l.json").write_bytes('{"a.jpg": ["x"], "b.jpg": ["é"]}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"l\.json is .*(?i:utf-8)"):
        table_at(folder / "l.json")


def test_nested_too_deep(folder: Path) -> None:
    deep = "[" * 50_000 + "]" * 50_000
    (folder / "l.json").write_text('{"a.jpg": ["x"], "b.jpg": ' + deep + "}")
    with pytest.raises(DataError, match=r"l\.json is not valid JSON .nested too deep"):
        table_at(folder / "l.json")
    (folder / "l.json").write_text('[{"file_name": "a.jpg", "labels": ["x"], "more": ' + "[" * 90 + "]" * 90 + "}]")
    assert table_at(folder / "l.json").matrix.tolist() == [[1]]

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import boxes_of, put_images, put_lines, table_at

from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_images(tmp_path / "data", "a.jpg", "b.jpg", "c.jpg")


def test_lists_splits_groups_and_other_fields(folder: Path) -> None:
    put_lines(
        folder / "labels.jsonl",
        {"file_name": "a.jpg", "labels": ["cat", "bus, red|old"], "split": "train", "group": 7, "caption": "hm"},
        {"file_name": "b.jpg", "labels": [], "split": "valid", "id": 3},
        {"file_name": "c.jpg", "labels": "", "split": "test"},
        {"file_name": "d.jpg", "lables": ["cat"], "split": "test"},
    )
    put_images(folder, "d.jpg")
    table = table_at(folder)
    assert table.labels.names == ("bus, red|old", "cat")
    assert table.matrix.tolist() == [[PRESENT, PRESENT], [ABSENT, ABSENT], [ABSENT, ABSENT]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val", "test"]
    assert table.groups is not None
    assert table.groups.tolist() == ["7", "", ""]
    assert any("JSON lines" in note for note in table.notes)
    assert "fields that are not used: caption, id, lables" in table.notes
    assert any("1 images have no field with labels" in note for note in table.notes)


def test_rows_without_any_labels(folder: Path) -> None:
    rows = [{"file_name": "a.jpg", "labels": None}, {"file_name": "b.jpg", "labels": None}]
    path = put_lines(folder / "labels.jsonl", *rows)
    (folder / "names.txt").write_text("cat\ndog\n")
    for labels in (None, str(folder / "names.txt")):
        with pytest.raises(DataError, match="nothing to learn"):
            table_at(path, labels=labels)


def test_unknown_labels_beside_a_known_rest(folder: Path) -> None:
    rows = [
        {"file_name": "a.jpg", "labels": ["x"], "unknown_labels": ["y"]},
        {"file_name": "b.jpg", "labels": ["y"]},
    ]
    assert table_at(put_lines(folder / "l.jsonl", *rows)).matrix.tolist() == [[1, UNKNOWN], [0, 1]]


def test_absent_labels_make_the_rest_unknown(folder: Path) -> None:
    rows = [
        {"file_name": "a.jpg", "labels": ["x"], "absent_labels": ["y"]},
        {"file_name": "b.jpg", "labels": ["z"]},
    ]
    assert table_at(put_lines(folder / "l.ndjson", *rows)).matrix.tolist() == [[1, 0, -1], [-1, -1, 1]]


def test_texts_with_a_delimiter_and_lists_as_text(folder: Path) -> None:
    rows = [{"image": "a.jpg", "tags": "x; y"}, {"image": "b.jpg", "tags": "y"}, {"image": "c.jpg", "tags": ""}]
    table = table_at(put_lines(folder / "l.jsonl", *rows))
    assert table.labels.names == ("x", "y")
    assert "labels separated by ';'" in table.notes
    rows = [{"image": "a.jpg", "tags": "['x; y', \"it's\"]"}, {"image": "b.jpg", "tags": '["z"]'}]
    assert table_at(put_lines(folder / "l.jsonl", *rows)).labels.names == ("it's", "x; y", "z")


def test_wide_fields_are_those_that_answer(folder: Path) -> None:
    rows = [
        {"id": 0, "file_name": "a.jpg", "cat": 1, "dog": None, "width": 640, "caption": "hm", "note": None},
        {"id": 1, "file_name": "b.jpg", "cat": False, "dog": 1.0, "width": 1, "caption": ""},
        {"id": 1, "file_name": "c.jpg", "dog": 0},
    ]
    path = put_lines(folder / "l.jsonl", *rows)
    table = table_at(path)
    assert table.labels.names == ("cat", "dog")
    assert table.matrix.tolist() == [[1, -1], [0, 1], [-1, 0]]
    assert "fields that are not used: id, width, caption, note" in table.notes
    assert table_at(path, blank="absent").matrix.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert table_at(path, ignore_columns=("dog",)).labels.names == ("cat",)


def test_numbers_become_names_and_are_said(folder: Path) -> None:
    rows = [{"file_name": "a.jpg", "label": 3}, {"file_name": "b.jpg", "label": 10}]
    table = table_at(put_lines(folder / "l.jsonl", *rows))
    assert table.labels.names == ("10", "3")
    assert any("numbers without names" in note for note in table.notes)


def test_objects_give_boxes_and_labels(folder: Path) -> None:
    rows = [
        {"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3, 4], [0, 0, 9, 9]], "categories": ["cat", "dog"]}},
        {"file_name": "b.jpg", "objects": {"bbox": [], "categories": []}},
    ]
    table = table_at(put_lines(folder / "l.jsonl", *rows))
    assert table.matrix.tolist() == [[1, 1], [0, 0]]
    assert boxes_of(table) == [("a.jpg", "cat", [1, 2, 4, 6]), ("a.jpg", "dog", [0, 0, 9, 9])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"file_name": "a.jpg", "labels": ["x"]}\n{"file_name": "b.jpg", "lab',
            r"l\.jsonl, line 2: cut off or no valid",
        ),
        ('[{"file_name": "a.jpg"}]\n', r"l\.jsonl, line 1: .* is no object"),
        ('{"file_name": "a.jpg", "labels": {"x": 1}}\n', r"l\.jsonl, line 1, field 'labels': .* is no label name"),
        ('{"file_name": "a.jpg", "labels": ["x", true]}\n', r"line 1, field 'labels': 'True' is no label name"),
        ('{"file_name": "a.jpg", "labels": [0, 1, 0, 1]}\n', r"line 1, field 'labels': .*looks like 0 and 1"),
        ('{"file_name": "a.jpg", "labels": "[\'x\' \'y\']"}\n', r"line 1, field 'labels': .*no commas between"),
        ('{"file_name": "a.jpg", "labels": "[x y]"}\n', r"line 1, field 'labels': .* is no list of names"),
        ('{"file_name": "a.jpg", "labels": ["x"]}\n\n{"labels": ["x"]}\n', r"line 3: field 'file_name' is missing"),
        ('{"file_name": 3, "labels": ["x"]}\n', r"line 1: field 'file_name' is 3, not a file name"),
        ('{"shot": "a.jpg", "labels": ["x"]}\n', r"no field with the image files \(it has: shot, labels\)"),
        ('{"file_name": "a.jpg", "caption": "x y z"}\n', r"no field with labels \(it has: file_name, caption\)"),
        ('{"file_name": "../a.jpg", "labels": ["x"]}\n', r"line 1: '\.\./a\.jpg' leads out of the data folder"),
        ('{"file_name": "no.jpg", "labels": ["x"]}\n', r"line 1: 'no\.jpg' is not there"),
        ('{"file_name": "a.jpg", "labels": ["x"], "split": "held"}\n', r"line 1: split 'held' is none we know"),
        (
            '{"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3]], "categories": ["x"]}}\n',
            r"box 1: .* is not 4 numbers",
        ),
        ('{"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3, 0]], "categories": ["x"]}}\n', r"box 1: .*above 0"),
        (
            '{"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3, 4]], "categories": []}}\n',
            r"lists of the same length",
        ),
        ("\n\n", r"l\.jsonl has no rows"),
    ],
)
def test_errors_name_the_line(folder: Path, text: str, message: str) -> None:
    path = folder / "l.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        table_at(path)


def test_not_utf8(folder: Path) -> None:
    (folder / "l.jsonl").write_bytes(b'{"file_name": "a.jpg", "labels": ["x"]}\n{"file_name": "\xff.jpg"}\n')
    with pytest.raises(DataError, match=r"l\.jsonl, row 2: not UTF-8"):
        table_at(folder / "l.jsonl")


def test_a_label_that_is_not_in_the_label_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("cat\ndog\n", encoding="utf-8")
    path = put_lines(folder / "l.jsonl", {"file_name": "a.jpg", "labels": ["cta"]})
    with pytest.raises(DataError, match=r"line 1: label 'cta' is not in names\.txt; did you mean 'cat'"):
        table_at(path, labels=str(tmp_path / "names.txt"))

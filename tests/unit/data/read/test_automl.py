from __future__ import annotations

import re
from pathlib import Path

import pytest
from labelled_files import boxes_of, put_images, put_lines, table_at

from manylabel.data.read.automl import FORMAT
from manylabel.error import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_images(tmp_path / "data", "photos/a.jpg", "photos/b c.jpg", "photos/c.jpg")


def _put(folder: Path, text: str) -> Path:
    (folder / "import.csv").write_text(text, encoding="utf-8")
    return folder


def test_sets_and_labels(folder: Path) -> None:
    table = table_at(
        _put(
            folder,
            'TRAIN,gs://bucket/photos/a.jpg,x,"y, z"\nVALIDATION,gs://bucket/photos/b%20c.jpg,x\ntest,gs://bucket/photos/c.jpg\n',
        )
    )
    assert any("Google AutoML" in note for note in table.notes)
    assert table.keys.tolist() == ["photos/a.jpg", "photos/b c.jpg", "photos/c.jpg"]
    assert table.labels.names == ("x", "y, z")
    assert table.matrix.tolist() == [[1, 1], [1, 0], [0, 0]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val", "test"]


def test_unassigned_rows_switch_the_splits_off(folder: Path) -> None:
    table = table_at(_put(folder, "TRAIN,gs://b/a.jpg,x\nUNASSIGNED,gs://b/c.jpg,y\n,gs://b/b c.jpg,y\n"))
    assert table.split is None
    assert "2 of 3 rows are in no set, so the sets are not used as splits" in table.notes
    assert table_at(_put(folder, "gs://b/a.jpg,x\ngs://b/c.jpg,y\n")).split is None


def test_boxes_in_several_rows_for_an_image(folder: Path) -> None:
    text = (
        "TRAIN,gs://b/a.jpg,cat,0.1,0.2,,,0.5,0.6,,\n"
        "TRAIN,gs://b/c.jpg,,,,,,,,,\n"
        "TRAIN,gs://b/a.jpg,dog,0.25,0.5,0.75,0.5,0.75,1,0.25,1\n"
    )
    table = table_at(_put(folder, text))
    assert table.keys.tolist() == ["photos/a.jpg", "photos/c.jpg"]
    assert table.matrix.tolist() == [[1, 1], [0, 0]]
    assert boxes_of(table) == [("photos/a.jpg", "cat", [4, 6, 20, 18]), ("photos/a.jpg", "dog", [10, 15, 30, 30])]


def test_json_lines_of_vertex(folder: Path) -> None:
    use = {"aiplatform.googleapis.com/ml_use": "training"}
    rows = [
        {
            "imageGcsUri": "gs://b/photos/a.jpg",
            "classificationAnnotations": [{"displayName": "x"}, {"displayName": "y"}],
            "dataItemResourceLabels": use,
        },
        {
            "imageGcsUri": "gs://b/photos/c.jpg",
            "boundingBoxAnnotations": [{"displayName": "y", "yMin": 0.5, "xMax": 0.5, "yMax": 1.0}],
            "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "test"},
        },
    ]
    table = table_at(put_lines(folder / "import.jsonl", *rows))
    assert any("Google AutoML" in note for note in table.notes)
    assert table.matrix.tolist() == [[1, 1], [0, 1]]
    assert boxes_of(table) == [("photos/c.jpg", "y", [0, 15, 20, 30])]
    assert table.split is not None
    assert table.split.tolist() == ["train", "test"]


def test_csv_files_with_a_header_are_not_ours(folder: Path) -> None:
    put_images(folder, "a.jpg")
    for text in ("file_name,labels\nphotos/a.jpg,x\n", "Image,a.jpg\nphotos/a.jpg,1\n"):
        assert any("read as CSV" in note for note in table_at(_put(folder, text)).notes)


def test_two_images_of_one_name_are_not_taken_for_each_other(folder: Path) -> None:
    with pytest.raises(DataError, match=r"row 2: 'other/a\.jpg' is not there"):
        table_at(_put(folder, "gs://b/photos/a.jpg,x\ngs://b/other/a.jpg,y\n"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("HELD,gs://b/a.jpg,x", r"import\.csv, row 2: 'HELD' where the image should be; the set is none of"),
        ("TRAIN,nothing,x", r"import\.csv, row 2: 'nothing' where the image should be; it is no image file"),
        ("TRAIN,gs://b/gone.jpg,x", r"import\.csv, row 2: 'gone\.jpg' is not there"),
        ("TRAIN,gs://b/c.jpg,x,0.1,0.2,,,0.5,,,", r"row 2: a box needs a label and 4 or 8 numbers"),
        ("TRAIN,gs://b/c.jpg,x,10,20,,,30,40,,", r"row 2: box .*shares of the image's width"),
        ("TRAIN,gs://b/c.jpg,x,0.5,0.2,,,0.5,0.6,,", r"row 2: box"),
        ("TRAIN,gs://b/c.jpg,x,0.5,0.2,,,1.5,0.6,,", r"row 2: the box of 'x' .*is outside"),
        ('TRAIN,gs://b/c.jpg,"x', r"import\.csv, row 2: .*quote not closed"),
        ("TRAIN,../a.png,x", r"row 2: '\.\./a\.png' leads out"),
    ],
)
def test_errors_name_the_row(folder: Path, row: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        table_at(_put(folder, f"TRAIN,gs://b/photos/a.jpg,x\n{row}\n"))


def test_errors_in_json_lines(folder: Path) -> None:
    good = {"imageGcsUri": "gs://b/a.jpg", "classificationAnnotations": [{"displayName": "x"}]}
    for bad, message in (
        ({"image": "a"}, r"i\.jsonl, line 2: field 'imageGcsUri' is missing"),
        ({**good, "classificationAnnotations": [{}]}, r"line 2: an annotation without 'displayName'"),
        (
            {**good, "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "held"}},
            r"line 2: .*'held' is none of",
        ),
    ):
        with pytest.raises(DataError, match=message):
            table_at(put_lines(folder / "i.jsonl", good, bad))


def test_a_list_of_files_without_sets_and_addresses_is_not_ours(folder: Path) -> None:
    for text in ("photos/a.jpg,x|y\nphotos/c.jpg,y\n", "photos/a.jpg,x,y\nphotos/c.jpg,x\n"):
        assert FORMAT.sniff(_put(folder, text) / "import.csv") == ""
    assert FORMAT.sniff(_put(folder, "TRAIN,photos/a.jpg,x\nTEST,photos/c.jpg,x\n") / "import.csv")
    assert FORMAT.sniff(_put(folder, "TRAIN,VALIDATION\n1,2\n") / "import.csv") == ""


def test_several_labels_in_a_cell_are_no_label(folder: Path) -> None:
    for cell in ("x|y", "x;y"):
        with pytest.raises(DataError, match=rf"import\.csv, row 1: '{re.escape(cell)}' looks like several labels"):
            table_at(_put(folder, f"TRAIN,gs://b/photos/a.jpg,{cell}\n"))


def test_a_set_without_an_image(folder: Path) -> None:
    with pytest.raises(DataError, match=r"import\.csv, row 2: '' where the image should be"):
        table_at(_put(folder, "TRAIN,gs://b/photos/a.jpg,x\nTRAIN\n"))


@pytest.mark.parametrize("labels", [["test"], "test", 5])
def test_labels_of_an_item_that_are_no_object(folder: Path, labels: object) -> None:
    row = {"imageGcsUri": "gs://b/a.jpg", "classificationAnnotations": [{"displayName": "x"}]}
    with pytest.raises(DataError, match=r"i\.jsonl, line 1: field 'dataItemResourceLabels' must be an object"):
        table_at(put_lines(folder / "i.jsonl", {**row, "dataItemResourceLabels": labels}))

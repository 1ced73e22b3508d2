from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import put_images, put_lines, table_at

from manylabel.error import DataError
from manylabel.labels import UNKNOWN


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_lists_written_as_text_in_a_csv(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "sub/b.jpg", "c.jpg")
    _put(
        tmp_path / "metadata.csv",
        'file_name,labels,text\na.jpg,"[\'x\', \'y, z\']",hi\nsub/b.jpg,"[""x""]",\nc.jpg,[],\n',
    )
    table = table_at(tmp_path)
    assert table.keys.tolist() == ["a.jpg", "sub/b.jpg", "c.jpg"]
    assert table.labels.names == ("x", "y, z")
    assert table.matrix.tolist() == [[1, 1], [1, 0], [0, 0]]
    assert any("Hugging Face imagefolder (metadata.csv)" in note for note in table.notes)
    assert "fields that are not used: text" in table.notes


def test_one_metadata_file_for_each_split(tmp_path: Path) -> None:
    put_images(tmp_path, "train/a.jpg", "validation/a.jpg", "test/deep/t.jpg")
    put_lines(tmp_path / "train/metadata.jsonl", {"file_name": "a.jpg", "labels": ["x", "y"]})
    put_lines(tmp_path / "validation/metadata.jsonl", {"file_name": "a.jpg", "labels": ["y"]})
    put_lines(tmp_path / "test/metadata.jsonl", {"file_name": "deep/t.jpg", "labels": []})
    table = table_at(tmp_path)
    found = dict(zip(table.keys.tolist(), table.split.tolist() if table.split is not None else [], strict=True))
    assert found == {"train/a.jpg": "train", "validation/a.jpg": "val", "test/deep/t.jpg": "test"}
    assert any("(test/metadata.jsonl)" in note for note in table.notes)


def test_splits_from_the_names_in_one_file_at_the_top(tmp_path: Path) -> None:
    put_images(tmp_path, "train/a.jpg", "test/b.jpg")
    _put(tmp_path / "metadata.csv", "file_name,label\ntrain/a.jpg,x\ntest/b.jpg,y\n")
    table = table_at(tmp_path)
    assert table.split is not None
    assert table.split.tolist() == ["train", "test"]


def test_a_lone_train_folder_is_no_split(tmp_path: Path) -> None:
    put_images(tmp_path, "train/a.jpg", "train/b.jpg")
    rows = [{"file_name": name, "labels": ["x"]} for name in ("a.jpg", "b.jpg")]
    put_lines(tmp_path / "train/metadata.jsonl", *rows)
    assert table_at(tmp_path).split is None
    (tmp_path / "train/metadata.jsonl").unlink()
    put_lines(tmp_path / "metadata.jsonl", *(row | {"file_name": f"train/{row['file_name']}"} for row in rows))
    assert table_at(tmp_path).split is None


def test_inside_a_data_folder_and_wide_with_gaps(tmp_path: Path) -> None:
    put_images(tmp_path / "data", "train/a.jpg", "train/b.jpg")
    _put(tmp_path / "data/train/metadata.csv", "file_name,cat,dog,prompt\na.jpg,1,,p\nb.jpg,0,1,q\n")
    table = table_at(tmp_path)
    assert table.keys.tolist() == ["train/a.jpg", "train/b.jpg"]
    assert table.matrix.tolist() == [[1, UNKNOWN], [0, 1]]


def test_parquet_metadata(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    put_images(tmp_path, "a.jpg", "b.jpg")
    columns = {"file_name": ["a.jpg", "b.jpg"], "labels": [["x", "y"], ["y"]]}
    parquet.write_table(pa.table(columns), tmp_path / "metadata.parquet")
    assert table_at(tmp_path).matrix.tolist() == [[1, 1], [0, 1]]
    (tmp_path / "metadata.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"metadata\.parquet is cut off or no Parquet file"):
        table_at(tmp_path, format="imagefolder")


def test_whole_numbers_as_labels_are_said(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "b.jpg")
    put_lines(tmp_path / "metadata.jsonl", {"file_name": "a.jpg", "label": 0}, {"file_name": "b.jpg", "label": 1})
    table = table_at(tmp_path)
    assert table.labels.names == ("0", "1")
    assert any("'0', '1'" in note for note in table.notes)


def test_a_metadata_csv_of_something_else_is_left_to_others(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "b.jpg")
    _put(tmp_path / "metadata.csv", "image,labels\na.jpg,x\nb.jpg,y\n")
    assert any("read as CSV" in note for note in table_at(tmp_path).notes)
    with pytest.raises(DataError, match=r"metadata\.csv: no field 'file_name' \(found 'image'\)"):
        table_at(tmp_path, format="imagefolder")


def test_errors_name_file_and_row(tmp_path: Path) -> None:
    put_images(tmp_path, "train/a.jpg")
    good = {"file_name": "a.jpg", "labels": ["x"]}
    put_lines(tmp_path / "train/metadata.jsonl", good, {"file_name": "gone.jpg", "labels": []})
    with pytest.raises(DataError, match=r"train/metadata\.jsonl, line 2: 'train/gone\.jpg' is not there"):
        table_at(tmp_path)
    put_lines(tmp_path / "train/metadata.jsonl", good, {"file_name": "", "labels": []})
    with pytest.raises(DataError, match=r"train/metadata\.jsonl, line 2: field 'file_name' is missing or blank"):
        table_at(tmp_path)
    _put(tmp_path / "train/metadata.csv", "file_name,label\n")
    with pytest.raises(DataError, match=r"metadata\.jsonl and metadata\.csv; keep one"):
        table_at(tmp_path, format="imagefolder")

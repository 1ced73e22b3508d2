from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from labelled_files import assert_same, put_images, table_at, varied_table

from manylabel.data.record import Record
from manylabel.data.source import FileSource
from manylabel.data.write.from_table import content_of
from manylabel.data.write.imagefolder import TARGET, write_imagefolder
from manylabel.data.write.target import Content
from manylabel.error import DataError
from manylabel.labels import ABSENT, LabelSpace

FOLDERS = ["train/", "validation/", "train/", "test/"]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("mostly_unknown", [False, True])
@pytest.mark.parametrize("boxes", [False, True])
def test_round_trip_with_splits(tmp_path: Path, mostly_unknown: bool, boxes: bool) -> None:
    table = varied_table(tmp_path / "from", boxes=boxes, mostly_unknown=mostly_unknown)
    notes = write_imagefolder(content_of(table, "link"), tmp_path / "to")
    assert any("labels.txt has all 5 labels" in note for note in notes)  # 'never' is on no image
    again = table_at(tmp_path / "to", labels=str(tmp_path / "to" / "labels.txt"))
    assert_same(again, table, FOLDERS)
    if boxes:
        assert again.objects is not None
        assert again.objects.crowd.sum() == 1


def test_round_trip_without_splits_and_with_images_left_where_they_are(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from", splits=False)
    write_imagefolder(content_of(table, "copy"), tmp_path / "to")
    assert_same(table_at(tmp_path / "to", labels=str(tmp_path / "to" / "labels.txt")), table)
    table = varied_table(tmp_path / "from")
    notes = write_imagefolder(content_of(table, "leave"), tmp_path / "left")
    assert any("data.images=" in note for note in notes)
    labels = str(tmp_path / "left" / "labels.txt")
    assert_same(table_at(tmp_path / "left", labels=labels, images=str(tmp_path / "from")), table)


def test_writing_what_was_read_changes_no_name(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from")
    write_imagefolder(content_of(table, "link"), tmp_path / "one")
    first = table_at(tmp_path / "one")
    write_imagefolder(content_of(first, "link"), tmp_path / "two")
    assert_same(table_at(tmp_path / "two"), first)


def test_fields_are_there_only_when_needed(tmp_path: Path) -> None:
    put_images(tmp_path / "from", "a.jpg", "b.jpg")
    records = [Record("a.jpg", "1", present=("x",)), Record("b.jpg", "2")]
    content = Content(records, LabelSpace(("x",)), ABSENT, FileSource(tmp_path / "from"), "copy")
    assert write_imagefolder(content, tmp_path / "to") == []
    assert _rows(tmp_path / "to/metadata.jsonl") == [
        {"file_name": "a.jpg", "labels": ["x"]},
        {"file_name": "b.jpg", "labels": []},
    ]
    content = replace(content, records=[records[0], replace(records[1], unknown=("x",), group="g")])
    write_imagefolder(content, tmp_path / "to")
    assert _rows(tmp_path / "to/metadata.jsonl") == [
        {"file_name": "a.jpg", "labels": ["x"], "unknown_labels": [], "group": None},
        {"file_name": "b.jpg", "labels": [], "unknown_labels": ["x"], "group": "g"},
    ]


def test_an_error_leaves_nothing_half_written(tmp_path: Path) -> None:
    put_images(tmp_path / "from", "a.jpg")
    records = [Record("a.jpg", "row 1", present=("x",), split="train"), Record("a.jpg", "row 2")]
    content = Content(records, LabelSpace(("x",)), ABSENT, FileSource(tmp_path / "from"), "copy")
    with pytest.raises(DataError, match="row 2: the image is in no split while others are"):
        write_imagefolder(content, tmp_path / "to")
    assert not list(tmp_path.glob("to/**/*.jsonl*"))


def test_fields_that_only_one_split_fills_are_said(tmp_path: Path) -> None:
    notes = write_imagefolder(content_of(varied_table(tmp_path / "from"), "link"), tmp_path / "to")
    assert any(note.startswith("unknown_labels, ") and "one split at a time" in note for note in notes)


def test_the_datasets_library_loads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    put_images(tmp_path / "from", "a.jpg", "b.jpg", "猫 1.jpg", "d.jpg")
    labels = {"a.jpg": ("x, y",), "b.jpg": ("z",), "猫 1.jpg": ("x, y", "z"), "d.jpg": ("z",)}
    splits = {"a.jpg": "train", "b.jpg": "val", "猫 1.jpg": "train", "d.jpg": "test"}
    records = [Record(key, key, present=names, split=splits[key]) for key, names in labels.items()]
    content = Content(records, LabelSpace(("x, y", "z")), ABSENT, FileSource(tmp_path / "from"), TARGET.images)
    write_imagefolder(content, tmp_path / "to")
    loaded = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "to"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(part) for name, part in loaded.items()} == {"train": 2, "validation": 1, "test": 1}
    assert sorted(loaded["train"]["labels"]) == [["x, y"], ["x, y", "z"]]
    assert loaded["test"][0]["image"].size == (40, 30)


def test_the_datasets_library_loads_boxes_without_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    table = varied_table(tmp_path / "from", splits=False)
    write_imagefolder(content_of(table, "copy"), tmp_path / "to")
    loaded = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "to"), cache_dir=str(tmp_path / "cache"))
    rows = {tuple(row["labels"]): row for row in loaded["train"]}
    objects = rows[("bus, red",)]["objects"]
    assert objects["bbox"] == [[1, 2, 10, 20]]
    assert objects["categories"] == ["bus, red"]


def test_records_can_be_streamed_from_a_reader(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from", boxes=False)
    write_imagefolder(content_of(table, "link"), tmp_path / "one")
    from manylabel.config import DataConfig
    from manylabel.data.read import open_data

    records = open_data(DataConfig(path=str(tmp_path / "one")))
    content = Content(records, records.labels, records.reading.rest, records.reading.source, "link")
    write_imagefolder(content, tmp_path / "two")
    assert_same(table_at(tmp_path / "two"), table_at(tmp_path / "one"))

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from labelled_files import assert_same, put_images, table_at, varied_table

from manylabel.data.record import Record, Thing
from manylabel.data.source import FileSource
from manylabel.data.write.fiftyone import write_fiftyone
from manylabel.data.write.from_table import content_of
from manylabel.data.write.target import Content
from manylabel.error import DataError
from manylabel.labels import ABSENT, LabelSpace


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("mostly_unknown", [False, True])
def test_round_trip(tmp_path: Path, splits: bool, mostly_unknown: bool) -> None:
    table = varied_table(tmp_path / "from", splits=splits, mostly_unknown=mostly_unknown)
    assert write_fiftyone(content_of(table, "link"), tmp_path / "to") == []
    again = table_at(tmp_path / "to")
    assert_same(again, table)
    assert again.objects is not None
    assert again.objects.crowd.sum() == 1


def test_images_left_where_they_are(tmp_path: Path) -> None:
    table = varied_table(tmp_path / "from")
    notes = write_fiftyone(content_of(table, "leave"), tmp_path / "to")
    assert any("data.images=" in note for note in notes)
    assert_same(table_at(tmp_path / "to", images=str(tmp_path / "from")), table)
    samples = json.loads((tmp_path / "to/samples.json").read_text(encoding="utf-8"))["samples"]
    assert [Path(sample["filepath"]).is_file() for sample in samples] == [True] * 4


def test_the_folder_is_as_fiftyone_documents_it(tmp_path: Path) -> None:
    write_fiftyone(content_of(varied_table(tmp_path / "from"), "copy"), tmp_path / "to")
    metadata = json.loads((tmp_path / "to/metadata.json").read_text(encoding="utf-8"))
    assert "version" not in metadata  # with one, FiftyOne expects documents of its database
    assert metadata["info"]["classes"] == ["bus, red", "cat|dog", 'd\'été "x"', "never", "犬"]
    sample = json.loads((tmp_path / "to/samples.json").read_text(encoding="utf-8"))["samples"][0]
    assert sample["filepath"] == "data/a.jpg"
    assert (tmp_path / "to" / sample["filepath"]).is_file()
    assert sample["tags"] == ["train"]
    assert sample["ground_truth"]["_cls"] == "Classifications"
    assert sample["ground_truth"]["classifications"][0] == {"_cls": "Classification", "label": "bus, red", "tags": []}
    detection = sample["detections"]["detections"][0]
    assert detection["bounding_box"] == pytest.approx([1 / 40, 2 / 30, 10 / 40, 20 / 30])


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    put_images(tmp_path / "from", "a.jpg")

    class Broken:
        def __iter__(self) -> Iterator[Record]:
            yield Record("a.jpg", "row 1", present=("x",))
            raise DataError("row 2 is broken")

    content = Content(Broken(), LabelSpace(("x",)), ABSENT, FileSource(tmp_path / "from"), "link")
    with pytest.raises(DataError, match="row 2 is broken"):
        write_fiftyone(content, tmp_path / "to")
    assert not list((tmp_path / "to").glob("*.json*"))


def test_boxes_need_an_image_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/a.jpg").write_bytes(b"no image")
    record = Record("a.jpg", "row 7", present=("x",), things=(Thing("x", (0, 0, 2, 2)),))
    content = Content([record], LabelSpace(("x",)), ABSENT, FileSource(tmp_path / "from"), "leave")
    with pytest.raises(DataError, match=r"row 7: the boxes of 'a\.jpg' need its size"):
        write_fiftyone(content, tmp_path / "to")

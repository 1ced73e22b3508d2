from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labelled_files import boxes_of, put_images, put_json, table_at

from manylabel.error import DataError
from manylabel.labels import UNKNOWN


def _choices(*names: str) -> dict[str, Any]:
    return {"type": "choices", "from_name": "c", "to_name": "image", "value": {"choices": list(names)}}


def _region(kind: str, name: str, **value: Any) -> dict[str, Any]:
    return {"type": kind, "original_width": 40, "original_height": 30, "value": {kind: [name], **value}}


def _annotation(*results: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"result": list(results), "was_cancelled": False, **facts}


def _task(image: str, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"id": 1, "data": {"image": image, **data}, "annotations": list(annotations), "predictions": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_images(tmp_path / "data", "photo.jpg", "sub/my photo.jpg", "c.jpg", "d.jpg")


def test_choices_of_images_however_they_are_named(folder: Path) -> None:
    tasks = [
        _task("/data/upload/3/1a2b3c4d-photo.jpg", _annotation(_choices("Cat", "Dog"))),
        _task("/data/local-files/?d=elsewhere/sub/my%20photo.jpg", _annotation(_choices("Dog"))),
        _task("s3://bucket/deep/c.jpg", _annotation()),
        _task("https://host.test/x/d.jpg?token=1", _annotation(_choices("Cat"))),
    ]
    put_json(folder / "export.json", tasks)
    table = table_at(folder)
    assert any("Label Studio" in note for note in table.notes)
    assert table.keys.tolist() == ["photo.jpg", "sub/my photo.jpg", "c.jpg", "d.jpg"]
    assert table.labels.names == ("Cat", "Dog")
    assert table.matrix.tolist() == [[1, 1], [0, 1], [0, 0], [1, 0]]


def test_only_the_majority_makes_a_label_present(folder: Path) -> None:
    answers = [_annotation(_choices("x", "y")), _annotation(_choices("x")), _annotation(_choices("x", "z", "y"))]
    tasks = [
        _task("photo.jpg", *answers),
        _task("c.jpg", _annotation(_choices("y")), _annotation()),
        _task("d.jpg", _annotation(_choices("y")), _annotation(_choices("z"), ground_truth=True)),
    ]
    table = table_at(put_json(folder / "export.json", tasks))
    assert table.labels.names == ("x", "y", "z")
    assert table.matrix.tolist() == [[1, 1, UNKNOWN], [0, UNKNOWN, 0], [0, 0, 1]]
    assert any(note.startswith("annotators disagree on 2 images") for note in table.notes)


def test_what_nobody_annotated_is_left_out_and_said(folder: Path) -> None:
    cancelled = _annotation(_choices("y"), was_cancelled=True)
    tasks = [_task("photo.jpg", _annotation(_choices("x"))), _task("c.jpg", cancelled), _task("d.jpg")]
    tasks[2]["predictions"] = [{"result": [_choices("z")]}]
    table = table_at(put_json(folder / "export.json", tasks))
    assert table.keys.tolist() == ["photo.jpg"]
    assert table.labels.names == ("x",)
    assert "2 of 3 tasks are not annotated and left out (1 of them skipped by the annotator)" in table.notes


def test_regions(folder: Path) -> None:
    region = _region("rectanglelabels", "cat", x=10, y=20, width=50, height=40)
    turned = _region("rectanglelabels", "cat", x=50, y=0, width=20, height=100, rotation=90)
    polygon = _region("polygonlabels", "dog", points=[[0, 0], [50, 0], [50, 100]])
    brush = _region("brushlabels", "sky", format="rle", rle=[1, 2])
    about_region = {"type": "choices", "value": {"x": 1, "y": 1, "width": 2, "height": 2, "choices": ["blurred"]}}
    tasks = [_task("photo.jpg", _annotation(region, turned, polygon, brush, about_region))]
    table = table_at(put_json(folder / "export.json", tasks))
    assert table.labels.names == ("cat", "dog", "sky")
    boxes = [
        ("photo.jpg", "cat", [4, 6, 24, 18]),
        ("photo.jpg", "cat", [0, 0, 20, 8]),
        ("photo.jpg", "dog", [0, 0, 20, 30]),
    ]
    assert boxes_of(table) == boxes
    assert table.objects is not None
    mask = table.objects.masks[2]
    assert mask is not None
    assert 0.4 < mask.pixels(30, 40)[:, :20].mean() < 0.6
    assert any("of 1 brush and other regions only the labels" in note for note in table.notes)


def test_json_min_is_refused_and_says_what_to_export(folder: Path) -> None:
    facts = {"annotator": 1, "annotation_id": 5, "created_at": "2024", "lead_time": 3.5}
    items = [{"image": "photo.jpg", "caption": "old", "id": 7, "choice": "x", **facts}]
    with pytest.raises(DataError, match=r"export\.json, task 1 \(id 7\): .*JSON-MIN.*export it as JSON"):
        table_at(put_json(folder / "export.json", items))


def test_predictions_count_only_where_there_are_no_annotations_at_all(folder: Path) -> None:
    tasks = [{"data": {"image": name}, "predictions": [{"result": [_choices("x")]}]} for name in ("c.jpg", "d.jpg")]
    table = table_at(put_json(folder / "export.json", tasks))
    assert table.matrix.tolist() == [[1], [1]]
    assert "no task has annotations, so its predictions are read as labels" in table.notes


def test_the_labelling_config_gives_the_order(folder: Path) -> None:
    config = '<View><Choices name="c" toName="i"><Choice value="y"/><Choice value="x &amp; z"/></Choices></View>'
    (folder / "label_config.xml").write_text(config, encoding="utf-8")
    put_json(folder / "export.json", [_task("photo.jpg", _annotation(_choices("new")))])
    assert table_at(folder).labels.names == ("y", "x & z", "new")
    bomb = '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><View><Choice value="&d;"/></View>'
    (folder / "label_config.xml").write_text(bomb, encoding="utf-8")
    with pytest.raises(DataError, match=r"label_config\.xml is no labelling config"):
        table_at(folder)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (_task("gone.jpg", _annotation(_choices("x"))), r"e\.json, task 2 \(id 1\): 'gone\.jpg' is not there"),
        (
            _task("/data/upload/1/00112233-no.jpg", _annotation(_choices("x"))),
            r"task 2 .*00112233-no\.jpg' is not there",
        ),
        (_task("../../c.png", _annotation(_choices("x"))), r"task 2 \(id 1\): '\.\./\.\./c\.png' leads out"),
        (
            {"id": 9, "data": {"text": "hello"}, "annotations": [_annotation()]},
            r"task 2 \(id 9\): 'data' holds no image",
        ),
        ({"id": 9, "annotations": []}, r"task 2 \(id 9\): no 'data' with the image"),
        (_task("c.jpg", {"result": None}), r"task 2 \(id 1\), annotation 1: 'result' must be a list"),
        (_task("c.jpg", _annotation(_choices(3.5))), r"annotation 1, result 1: '3\.5' is no label name"),  # type: ignore[arg-type]
        (
            _task("c.jpg", _annotation(_region("rectanglelabels", "x", x=1, y=1))),
            r"result 1, x, y, width, height: .*4 numbers",
        ),
        (
            _task("c.jpg", _annotation(_region("rectanglelabels", "x", x=90, y=1, width=30, height=9))),
            r"the box of 'x' .*outside",
        ),
        (
            _task("c.jpg", _annotation(_region("polygonlabels", "x", points=[[1, 1]]))),
            r"result 1: a polygon needs three",
        ),
        ("c.jpg", r"e\.json, task 2: 'c\.jpg' is no task"),
    ],
)
def test_errors_name_the_task(folder: Path, task: Any, message: str) -> None:
    path = put_json(folder / "e.json", [_task("photo.jpg", _annotation(_choices("x"))), task])
    with pytest.raises(DataError, match=message):
        table_at(path)


def test_a_link_that_leads_back_ends_the_search(folder: Path) -> None:
    (folder / "sub" / "again").symlink_to(folder, target_is_directory=True)
    tasks = [_task("/data/upload/3/1a2b3c4d-my photo.jpg", _annotation(_choices("x")))]
    assert table_at(put_json(folder / "e.json", tasks)).keys.tolist() == ["sub/my photo.jpg"]


def test_cut_off_and_not_a_list(folder: Path) -> None:
    path = put_json(folder / "e.json", [_task("photo.jpg", _annotation(_choices("x")))] * 2)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(DataError, match=r"e\.json is cut off"):
        table_at(path)
    with pytest.raises(DataError, match=r"e\.json: an export of Label Studio is a list"):
        table_at(put_json(folder / "e.json", {"tasks": []}), format="label-studio")


@pytest.mark.parametrize(
    "text",
    [
        b'<?xml version="1.0" encoding="foo"?><View/>',
        b'<?xml version="1.0" encoding="shift_jis"?><View><Choice value="\x83\x65"/></View>',
        b"<View><Choice",
        b"\xff\xfe\x00",
        b"<View>" + b" " * (11 << 20) + b"</View>",
    ],
)
def test_a_labelling_config_that_cannot_be_read(folder: Path, text: bytes) -> None:
    (folder / "label_config.xml").write_bytes(text)
    put_json(folder / "export.json", [_task("photo.jpg", _annotation(_choices("x")))])
    with pytest.raises(
        DataError, match=r"label_config\.xml is no labelling config; mend it or delete it: .*label_config"
    ):
        table_at(folder)


def test_a_file_of_another_folder_is_not_taken_where_the_named_folder_exists(tmp_path: Path) -> None:
    put_images(tmp_path, "dogs/0.jpg", "dogs/1.jpg", "cats/2.jpg")
    tasks = [_task(f"http://h.test/{name}", _annotation(_choices("x"))) for name in ("cats/2.jpg", "cats/0.jpg")]
    path = put_json(tmp_path / "export.json", tasks)
    with pytest.raises(DataError, match=r"1 of 2 image files are missing.*\n.*'cats/0\.jpg' is not there"):
        table_at(path)


def test_files_found_in_another_place_are_counted_with_an_example(folder: Path) -> None:
    names = ("s3://b/deep/c.jpg", "s3://b/deep/d.jpg", "s3://b/photo.jpg")
    tasks = [_task(name, _annotation(_choices("x"))) for name in names]
    table = table_at(put_json(folder / "export.json", tasks))
    assert table.keys.tolist() == ["c.jpg", "d.jpg", "photo.jpg"]
    said = [note for note in table.notes if "not quite those of the files" in note]
    assert said == ["2 names of images are not quite those of the files: 'deep/c.jpg' is 'c.jpg'"]

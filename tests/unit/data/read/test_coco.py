"""COCO in and out: the official folders, what tools make of them, tri-state labels, masks, and files that lie."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from coco_sample import CATEGORIES, SQUARE, Change, image, note_of, put_small, small
from labelled_files import boxes_of, put_images, put_json, table_at

from manylabel.config import DataConfig
from manylabel.data.mask import Polygons, RunLength
from manylabel.data.read import find_format, open_data
from manylabel.data.read.coco import FORMAT, read_coco
from manylabel.data.read.coco_annotation import Annotation, read_shape
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN


def state(table: Table, key: str) -> dict[str, int]:
    row = table.keys.tolist().index(key)
    return dict(zip(table.labels.names, table.matrix[row].tolist(), strict=True))


def test_labels_boxes_masks_and_crowds(tmp_path: Path) -> None:
    table = table_at(put_small(tmp_path))
    assert table.labels.names == ("cat", "dog", "zebra")  # by id, also the one nobody uses
    assert table.keys.tolist() == ["a.jpg", "b.jpg", "c.jpg"]
    assert table.matrix.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert table.split is None
    assert boxes_of(table) == [
        ("a.jpg", "cat", [0.5, 1, 20.75, 9]),
        ("a.jpg", "dog", [4, 4, 14, 14]),
        ("a.jpg", "cat", [4, 4, 14, 14]),
        ("b.jpg", "dog", [4, 4, 14, 14]),
    ]
    objects = table.objects
    assert objects is not None
    assert objects.crowd.tolist() == [False, False, False, True]
    outline, _, _, runs = objects.masks
    assert isinstance(outline, Polygons)
    assert outline.pixels(30, 40)[4:14, 4:14].all()
    assert outline.pixels(30, 40).sum() == 100
    assert isinstance(runs, RunLength)
    assert np.flatnonzero(runs.pixels(30, 40).T.ravel()).tolist() == list(range(100, 120))
    assert "read as COCO (labels.json)" in table.notes[0]


@pytest.mark.parametrize("order", [("annotations", "categories", "images"), ("categories", "images", "annotations")])
def test_the_order_of_the_parts_in_the_file_does_not_matter(tmp_path: Path, order: tuple[str, ...]) -> None:
    path = put_small(tmp_path)
    data = small()
    put_json(path, {key: data[key] for key in order})
    table = table_at(tmp_path, format="coco")
    assert table.matrix.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_records_can_be_asked_for_again_without_reading_again(tmp_path: Path) -> None:
    path = put_small(tmp_path)
    reading = read_coco(path, DataConfig(path=str(path)))
    first = [(record.key, record.present, len(record.things)) for record in reading.records()]
    path.unlink()
    assert [(record.key, record.present, len(record.things)) for record in reading.records()] == first


# --- folders ----------------------------------------------------------------------------------------------------


def put_official(folder: Path) -> Path:
    put_images(folder, "train2017/000000000001.jpg", "train2017/000000000002.jpg", "val2017/000000000001.jpg")
    train = {"images": [image(1, "000000000001.jpg"), image(2, "000000000002.jpg")], "categories": CATEGORIES}
    val = {"images": [image(1, "000000000001.jpg")], "categories": CATEGORIES}
    put_json(folder / "annotations/instances_train2017.json", train | {"annotations": [note_of(1, 2, 3)]})
    put_json(folder / "annotations/instances_val2017.json", val | {"annotations": [note_of(1, 1, 7)]})
    captions = [{"id": 1, "image_id": 1, "caption": "a cat"}]
    put_json(folder / "annotations/captions_train2017.json", {"images": train["images"], "annotations": captions})
    put_json(folder / "annotations/person_keypoints_val2017.json", val | {"annotations": []})
    return folder


def test_the_official_folder_needs_no_options(tmp_path: Path) -> None:
    table = table_at(put_official(tmp_path))
    assert table.keys.tolist() == [
        "train2017/000000000001.jpg",
        "train2017/000000000002.jpg",
        "val2017/000000000001.jpg",
    ]
    assert table.split is not None
    assert table.split.tolist() == ["train", "train", "val"]
    assert table.matrix.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert "annotations/instances_train2017.json and 1 more" in table.notes[0]
    assert "images are in train2017/, val2017/" in table.notes


def test_one_official_file_alone_finds_its_images_and_has_no_split(tmp_path: Path) -> None:
    path = put_official(tmp_path) / "annotations/instances_train2017.json"
    table = table_at(path)
    assert table.keys.tolist() == ["000000000001.jpg", "000000000002.jpg"]
    assert table.source.describe("000000000002.jpg") == (40, 30)
    assert table.split is None


def test_the_folder_of_images_can_be_named(tmp_path: Path) -> None:
    path = put_small(tmp_path / "labels")
    put_images(tmp_path / "elsewhere", "a.jpg", "b.jpg", "c.jpg")
    table = table_at(path, images=str(tmp_path / "elsewhere"))
    assert table.source.path("a.jpg") == tmp_path / "elsewhere" / "a.jpg"  # type: ignore[attr-defined]
    with pytest.raises(DataError, match=r"data\.images: .*nowhere is not a folder"):
        table_at(path, images=str(tmp_path / "nowhere"))


def test_a_roboflow_export(tmp_path: Path) -> None:
    """Images beside the file, the same names in both folders, and a category that only groups, called like another."""
    categories = [
        {"id": 0, "name": "helmet", "supercategory": "none"},
        {"id": 1, "name": "helmet", "supercategory": "helmet"},
        {"id": 2, "name": "vest", "supercategory": "helmet"},
    ]
    for folder, label in (("train", 1), ("valid", 2)):
        put_images(tmp_path, f"{folder}/x.jpg")
        data = {"images": [image(0, "x.jpg")], "categories": categories, "annotations": [note_of(0, 0, label)]}
        put_json(tmp_path / folder / "_annotations.coco.json", data)
    table = table_at(tmp_path)
    assert table.labels.names == ("helmet", "vest")
    assert table.keys.tolist() == ["train/x.jpg", "valid/x.jpg"]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val"]
    assert table.matrix.tolist() == [[1, 0], [0, 1]]
    assert any("'helmet'" in note and "only groups" in note for note in table.notes)


def test_a_grouping_category_that_is_used_is_a_label(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["categories"] = [
            {"id": 3, "name": "animal", "supercategory": "none"},
            {"id": 7, "name": "dog", "supercategory": "animal"},
        ]

    assert table_at(put_small(tmp_path, change)).labels.names == ("animal", "dog")


def test_names_with_folders_and_backslashes(tmp_path: Path) -> None:
    put_images(tmp_path, "photos/day1/a.jpg", "photos/day2/b.jpg")
    data = small() | {"images": [image(11, "day1\\a.jpg"), image(12, "day2/b.jpg")]}
    table = table_at(put_json(tmp_path / "labels.json", data))
    assert table.keys.tolist() == ["day1/a.jpg", "day2/b.jpg"]
    flat = put_images(tmp_path / "flat", "a.jpg", "b.jpg")
    assert table_at(put_json(flat / "labels.json", data)).keys.tolist() == ["a.jpg", "b.jpg"]


def test_files_with_other_categories_are_united_by_name(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg", "b.jpg")
    first = {"images": [image(1, "a.jpg")], "annotations": [note_of(1, 1, 1)], "categories": [{"id": 1, "name": "cat"}]}
    second = {"images": [image(1, "b.jpg")], "annotations": [note_of(1, 1, 1)]}
    put_json(tmp_path / "train.json", first)
    put_json(tmp_path / "val.json", second | {"categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]})
    table = table_at(tmp_path)
    assert state(table, "a.jpg") == {"cat": PRESENT, "dog": UNKNOWN}  # nobody looked for dogs there
    assert state(table, "b.jpg") == {"cat": ABSENT, "dog": PRESENT}
    assert any("train.json does not have 1 labels" in note and "dog" in note for note in table.notes)


def test_several_files_of_one_split_must_be_chosen_from(tmp_path: Path) -> None:
    folder = put_official(tmp_path)
    put_json(folder / "annotations/instances_train2014.json", small())
    with pytest.raises(
        DataError, match=r"'train' \(instances_train2014\.json, instances_train2017\.json\); name the one"
    ):
        table_at(folder)


def test_what_is_not_coco_is_not_claimed(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg")
    others = {
        "list.json": [{"images": 1, "annotations": 2}],
        "other.json": {"samples": []},
        "images.json": {"images": []},
    }
    for name, value in others.items():
        assert FORMAT.sniff(put_json(tmp_path / name, value)) == ""
    assert FORMAT.sniff(tmp_path) == ""
    assert FORMAT.sniff(tmp_path / "absent.json") == ""
    (tmp_path / "annotations").symlink_to(tmp_path / "annotations")
    assert FORMAT.sniff(tmp_path) == ""


# --- three states -----------------------------------------------------------------------------------------------


def test_lvis_files_say_what_is_absent(tmp_path: Path) -> None:
    put_images(tmp_path, "train2017/000000000001.jpg", "val2017/000000000002.jpg")
    url = "http://images.example/{}.jpg"
    images = [
        {"id": 1, "coco_url": url.format("train2017/000000000001"), "neg_category_ids": [7]},
        {"id": 2, "coco_url": url.format("val2017/000000000002"), "neg_category_ids": []},
    ]
    images[0]["not_exhaustive_category_ids"] = [3]
    data = {"images": images, "annotations": [note_of(1, 1, 3)], "categories": CATEGORIES}
    table = table_at(put_json(tmp_path / "lvis_v1_train.json", data))
    assert table.keys.tolist() == ["train2017/000000000001.jpg", "val2017/000000000002.jpg"]
    assert state(table, "train2017/000000000001.jpg") == {"cat": PRESENT, "dog": ABSENT, "zebra": UNKNOWN}
    assert state(table, "val2017/000000000002.jpg") == {"cat": UNKNOWN, "dog": UNKNOWN, "zebra": UNKNOWN}


def test_ignored_objects_count_neither_way(tmp_path: Path) -> None:
    table = table_at(put_small(tmp_path, lambda data: data["annotations"][2].update(ignore=1)))
    assert state(table, "a.jpg") == {"cat": PRESENT, "dog": UNKNOWN, "zebra": ABSENT}
    assert table.objects is not None
    assert table.objects.difficult.tolist() == [False, True, False, False]


def test_labels_of_whole_images_need_no_box(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["annotations"] = [{"image_id": 13, "category_id": 90}, {"image_id": 11, "category_id": 3, "bbox": []}]

    table = table_at(put_small(tmp_path, change))
    assert table.objects is None
    assert table.matrix.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_odd_but_real_annotations_are_kept_and_told(tmp_path: Path) -> None:
    """A box of no width, an outline of two corners, one outline without its list, a mask without a box."""

    def change(data: dict[str, Any]) -> None:
        dog, cat, dog2, cat2 = data["annotations"]
        cat["bbox"] = [5, 5, 0, 8]
        dog2["segmentation"] = [[1, 1, 2, 2], *SQUARE]
        cat2["segmentation"] = SQUARE[0]
        del dog["bbox"]
        dog["segmentation"] = {"size": [30, 40], "counts": [33, 20, 10, 20, 1117]}  # columns 1 and 2, rows 3 to 22

    table = table_at(put_small(tmp_path, change))
    assert table.matrix.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert boxes_of(table) == [
        ("a.jpg", "dog", [4, 4, 14, 14]),
        ("a.jpg", "cat", [4, 4, 14, 14]),
        ("b.jpg", "dog", [1, 3, 3, 23]),
    ]
    assert any("1 objects have a box without any area" in note for note in table.notes)
    assert any("1 outlines have less than three corners" in note for note in table.notes)


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: d["annotations"][1].update(image_id=99),
            r"labels\.json, annotation 2: no image has the id 99.*drop",
        ),
        (lambda d: d["annotations"][1].pop("image_id"), r"annotation 2: 'image_id' is missing"),
        (lambda d: d["annotations"][1].update(category_id=8), r"annotation 2: category 8 is not in 'categories'"),
        (lambda d: d["annotations"][1].pop("category_id"), r"annotation 2: 'category_id' is missing"),
        (lambda d: d["annotations"].insert(0, "x"), r"labels\.json, annotations, entry 1: .*object"),
        (lambda d: d["images"][2].update(id=11), r"images, entry 3: another image has the id 11"),
        (lambda d: d["images"][2].pop("file_name"), r"image 13: neither 'file_name' nor 'coco_url'"),
        (lambda d: d["images"].append([]), r"labels\.json, images, entry 4: .*object"),
        (lambda d: d["images"][0].update(neg_category_ids=[5]), r"image 11, neg_category_ids: category 5 is not in"),
        (
            lambda d: d["images"][0].update(neg_category_ids=[3]),
            r"image 11: label 'cat' is given as present and as absent",
        ),
        (lambda d: d["images"].clear(), r"labels\.json has no 'images'"),
        (lambda d: d["annotations"].clear(), r"labels\.json: no annotation, so no image has a label"),
        (lambda d: d.update(categories=[]), r"labels\.json has no 'categories'.*captions.*instances_"),
        (lambda d: d.update(categories=7), r"labels\.json has no 'categories'"),
        (lambda d: d["categories"][0].pop("name"), r"categories, entry 1: not an object with 'id' and a 'name'"),
        (
            lambda d: d.update(categories=[*CATEGORIES, {"id": 7, "name": "x"}]),
            r"entry 4: another category has the id 7",
        ),
        (
            lambda d: d.update(categories=[*CATEGORIES, {"id": 8, "name": "cat"}]),
            r"categories 3 and 8: both are .*'cat'",
        ),
        (lambda d: d["annotations"][1].update(bbox=[1, 2, 3]), r"annotation 2: bbox must be four numbers"),
        (lambda d: d["annotations"][1].update(bbox=[1, 2, 3, "4"]), r"annotation 2: bbox must be four numbers"),
        (lambda d: d["annotations"][1].update(bbox=[1, 2, 3, 1e300]), r"annotation 2: bbox must be four numbers"),
        (lambda d: d["annotations"][1].update(bbox=[9, 9, -3, 4]), r"annotation 2: bbox .* negative size"),
        (lambda d: d["annotations"][1].update(bbox=[30, 2, 30, 4]), r"image 11: the box of 'cat' .*outside.*40×30"),
        (lambda d: d["annotations"][1].update(segmentation="x"), r"annotation 2: segmentation must be polygons or"),
        (lambda d: d["annotations"][1].update(segmentation=[[1, 2, 3]]), r"annotation 2: a polygon of 3 numbers"),
        (lambda d: d["annotations"][0]["segmentation"].update(counts=[3]), r"annotation 1: the runs .* cover 3 pixels"),
        (
            lambda d: d["images"][0].update(file_name="../a.jpg"),
            r"image 11: '\.\./a\.jpg' leads out of the data folder",
        ),
        (lambda d: d["images"][0].update(file_name="/z.jpg"), r"image 11: '/z\.jpg' leads out of the data folder"),
        (lambda d: d["images"][1].update(file_name="a.jpg"), r"image 12: 'a\.jpg' already stands in image 11"),
        (lambda d: d["images"][1].update(file_name="gone.jpg"), r"image 12: 'gone\.jpg' is not there"),
    ],
)
def test_an_error_names_file_and_entry(tmp_path: Path, change: Change, said: str) -> None:
    with pytest.raises(DataError, match=said):
        table_at(put_small(tmp_path, change))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
def test_a_truncated_file_is_told(tmp_path: Path, share: float) -> None:
    path = put_small(tmp_path)
    text = path.read_bytes()
    path.write_bytes(text[: int(len(text) * share)])
    with pytest.raises(DataError, match=r"labels\.json is cut off or no JSON"):
        table_at(path, format="coco")


def test_a_file_that_is_a_list_or_not_utf8(tmp_path: Path) -> None:
    path = put_json(put_images(tmp_path, "a.jpg") / "labels.json", [1, 2])
    with pytest.raises(DataError, match=r"labels\.json must hold a JSON object with 'images', 'annotations' and"):
        table_at(path, format="coco")
    path.write_bytes(json.dumps(small()).encode().replace(b'"dog"', b'"d\xe4g"'))
    with pytest.raises(DataError, match=r"labels\.json.*(UTF|no JSON|not valid)"):
        table_at(path, format="coco")


def test_captions_alone_are_told_what_is_missing(tmp_path: Path) -> None:
    put_images(tmp_path, "a.jpg")
    captions = {"images": [image(1, "a.jpg")], "annotations": [{"id": 1, "image_id": 1, "caption": "a cat"}]}
    put_json(tmp_path / "annotations/captions_val2017.json", captions)
    with pytest.raises(DataError, match=r"captions_val2017\.json has no 'categories'.*use instances_\*\.json"):
        table_at(tmp_path)


def test_annotations_without_an_image_can_be_dropped(tmp_path: Path) -> None:
    path = put_small(tmp_path, lambda data: data["annotations"][1].update(image_id=99))
    table = table_at(path, missing="drop")
    assert len(table) == 3
    assert boxes_of(table)[0] == ("a.jpg", "dog", [4, 4, 14, 14])
    assert "1 annotations were left out because no image has their image_id" in table.notes


def test_detection_prefers_coco_over_a_folder_of_json(tmp_path: Path) -> None:
    path, kind, reason = find_format(DataConfig(path=str(put_official(tmp_path))))
    assert (path, kind.name) == (tmp_path, "coco")
    assert "instances_train2017.json" in reason
    assert sum(1 for _ in open_data(DataConfig(path=str(tmp_path)))) == 3


def test_a_box_of_a_thousand_lists_is_named_in_a_few_words() -> None:
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    long = msgspec.Raw(json.dumps("x" * 100_000).encode())
    for entry in (Annotation(bbox=deep), Annotation(bbox=[1] * 100_000), Annotation(segmentation=long)):
        with pytest.raises(DataError, match=r"here: (bbox|segmentation) must be") as caught:
            read_shape(entry, "here", Counter())
        assert len(str(caught.value)) < 200

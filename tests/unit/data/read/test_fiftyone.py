from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labelled_files import boxes_of, put_images, put_json, table_at

from manylabel.error import DataError


def _classifications(*names: str) -> dict[str, Any]:
    return {"_cls": "Classifications", "classifications": [{"_cls": "Classification", "label": n} for n in names]}


def _detections(*found: tuple[str, list[float]]) -> dict[str, Any]:
    return {
        "_cls": "Detections",
        "detections": [{"_cls": "Detection", "label": n, "bounding_box": b} for n, b in found],
    }


def _samples(folder: Path, *samples: dict[str, Any]) -> Path:
    put_json(folder / "samples.json", {"samples": list(samples)})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_images(tmp_path / "set", "data/a.jpg", "data/deep/b.png", "data/c.jpg")


def test_classifications_tags_and_classes(folder: Path) -> None:
    put_json(folder / "metadata.json", {"name": "x", "default_classes": ["zebra", "cat", "dog"]})
    _samples(
        folder,
        {"filepath": "data/a.jpg", "tags": ["train", "nice"], "ground_truth": _classifications("cat", "dog")},
        {"filepath": "data/deep/b.png", "tags": ["validation"], "ground_truth": None},
        {
            "filepath": "data/c.jpg",
            "tags": ["test"],
            "ground_truth": _classifications("zebra"),
            "predictions": _classifications("cat"),
        },
    )
    table = table_at(folder)
    assert any("FiftyOne (samples.json)" in note for note in table.notes)
    assert table.keys.tolist() == ["a.jpg", "deep/b.png", "c.jpg"]
    assert table.labels.names == ("zebra", "cat", "dog")
    assert table.matrix.tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert table.split is not None
    assert table.split.tolist() == ["train", "val", "test"]


def test_detections_are_in_shares_of_the_image(folder: Path) -> None:
    table = table_at(
        _samples(
            folder,
            {
                "filepath": "data/a.jpg",
                "things": _detections(("cat", [0.25, 0.5, 0.5, 0.5])),
                "kind": _classifications("night"),
            },
            {
                "filepath": "data/c.jpg",
                "metadata": {"width": 40, "height": 30},
                "things": _detections(("cat", [0, 0, 1, 1])),
            },
        )
    )
    assert boxes_of(table) == [("a.jpg", "cat", [10, 15, 30, 30]), ("c.jpg", "cat", [0, 0, 40, 30])]
    assert table.matrix.tolist() == [[1, 1], [1, 0]]
    assert "labels from field 'kind' and 'things'" in table.notes


def test_a_single_classification(folder: Path) -> None:
    one = {"_cls": "Classification", "label": "cat"}
    assert table_at(_samples(folder, {"filepath": "data/a.jpg", "what": one})).matrix.tolist() == [[1]]


def test_paths_of_another_machine_are_found_by_their_end(folder: Path) -> None:
    sample = {"filepath": "/mnt/old/set/data/deep/b.png", "ground_truth": _classifications("x")}
    assert table_at(_samples(folder, sample)).keys.tolist() == ["data/deep/b.png"]


def test_the_form_for_whole_images_is_refused_and_says_what_to_export(folder: Path) -> None:
    put_json(folder / "labels.json", {"classes": ["x", "y"], "labels": {"a": 0, "deep/b": [1, 0]}})
    with pytest.raises(DataError, match=r"no samples\.json of FiftyOne; export it as a FiftyOneDataset"):
        table_at(folder)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"tags": []}, r"samples\.json, sample 2: no 'filepath'"),
        ({"filepath": "data/no.jpg", "ground_truth": None}, r"sample 2 \(data/no\.jpg\): 'no\.jpg' is not there"),
        (
            {"filepath": "data/c.jpg", "ground_truth": {"_cls": "Classifications", "classifications": [{}]}},
            r"sample 2 .*without a name",
        ),
        (
            {"filepath": "data/c.jpg", "ground_truth": {"classifications": 3}},
            r"sample 2 .*'ground_truth' must hold a list",
        ),
        (
            {"filepath": "data/c.jpg", "tags": ["train", "test"]},
            r"sample 2 .*test and train put the image in two splits",
        ),
        (
            {"filepath": "data/c.jpg", "d": _detections(("x", [0, 0, 1]))},
            r"sample 2 .*detection 1, bounding_box: .*4 numbers",
        ),
        ({"filepath": "data/c.jpg", "d": _detections(("x", [0.5, 0, 0.9, 1]))}, r"sample 2 .*the box of 'x' .*outside"),
        (
            {"filepath": "data/c.jpg", "other": _classifications("x"), "third": _classifications("x")},
            r"fields other, third all hold",
        ),
    ],
)
def test_errors_name_the_sample(folder: Path, sample: dict[str, Any], message: str) -> None:
    name = "first" if "third" in sample else "ground_truth"
    first = {"filepath": "data/a.jpg", **({} if name == "first" else {name: _classifications("x")})}
    with pytest.raises(DataError, match=message):
        table_at(_samples(folder, first, sample))


def test_other_errors(folder: Path) -> None:
    _samples(folder, {"filepath": "data/a.jpg", "ground_truth": _classifications("x")})
    text = (folder / "samples.json").read_text()
    (folder / "samples.json").write_text(text[:-20])
    with pytest.raises(DataError, match=r"samples\.json is cut off"):
        table_at(folder)
    with pytest.raises(DataError, match=r"samples\.json holds no samples"):
        table_at(_samples(folder), format="fiftyone")
    with pytest.raises(DataError, match=r"no field with Classifications or Detections"):
        table_at(_samples(folder, {"filepath": "data/a.jpg"}))
    put_json(folder / "metadata.json", {"default_classes": ["cat"]})
    with pytest.raises(DataError, match=r"sample 1 \(data/a\.jpg\): there is no label 'x'.*not in the list of labels"):
        table_at(_samples(folder, {"filepath": "data/a.jpg", "ground_truth": _classifications("x")}))


@pytest.mark.parametrize("tags", [5, "train", {"train": 1}])
def test_tags_that_are_no_list(folder: Path, tags: object) -> None:
    _samples(folder, {"filepath": "data/a.jpg", "tags": tags, "ground_truth": _classifications("x")})
    with pytest.raises(DataError, match=r"samples\.json, sample 1 \(data/a\.jpg\): 'tags' must be a list"):
        table_at(folder)

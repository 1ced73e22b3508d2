"""One small table, written in every format as its makers do, is read back as the same table without any option."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.read import FORMATS, read_table
from manylabel.data.table import Table

LABELS = ("bird", "cat", "dog")
SIZE = (48, 32)
IMAGES = {  # name → labels, split
    "a1": (("cat",), "train"),
    "b2": (("bird", "dog"), "train"),
    "c3": (("dog",), "train"),
    "d4": (("bird", "cat", "dog"), "train"),
    "e5": (("bird",), "val"),
    "f6": (("cat", "dog"), "val"),
}
BOX = (8, 4, 24, 20)  # left, top, right, bottom of every object


def _jpeg(name: str) -> bytes:
    """A picture that no other name has."""
    shade = 30 * list(IMAGES).index(name)
    data = io.BytesIO()
    Image.new("RGB", SIZE, (shade, 255 - shade, 90)).save(data, "JPEG")
    return data.getvalue()


def _photos(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in IMAGES:
        (folder / f"{name}.jpg").write_bytes(_jpeg(name))
    return folder


def _csv(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _json(path: Path, value: object) -> None:
    _lines(path, [json.dumps(value)])


def write_csv(folder: Path) -> None:
    _photos(folder / "images")
    rows = [[f"{name}.jpg", "|".join(labels), split] for name, (labels, split) in IMAGES.items()]
    _csv(folder / "labels.csv", [["file_name", "labels", "split"], *rows])


def _rows() -> list[dict[str, object]]:
    return [
        {"file_name": f"{name}.jpg", "labels": list(labels), "split": split} for name, (labels, split) in IMAGES.items()
    ]


def write_jsonl(folder: Path) -> None:
    _photos(folder / "images")
    _lines(folder / "labels.jsonl", [json.dumps(row) for row in _rows()])


def write_json(folder: Path) -> None:
    _photos(folder / "images")
    _json(folder / "labels.json", _rows())


def write_parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    _photos(folder / "images")
    pq.write_table(pa.Table.from_pylist(_rows()), folder / "labels.parquet")


def write_imagefolder(folder: Path) -> None:
    for split, place in (("train", "train"), ("val", "validation")):
        names = [name for name, (_, part) in IMAGES.items() if part == split]
        for name in names:
            (folder / place).mkdir(parents=True, exist_ok=True)
            (folder / place / f"{name}.jpg").write_bytes(_jpeg(name))
        rows = [{"file_name": f"{name}.jpg", "labels": list(IMAGES[name][0])} for name in names]
        _lines(folder / place / "metadata.jsonl", [json.dumps(row) for row in rows])


def write_hf_datasets(folder: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face datasets to write its folders")
    features = datasets.Features(
        {"image": datasets.Image(), "labels": datasets.Sequence(datasets.ClassLabel(names=list(LABELS)))}
    )
    parts = {}
    for split, name in (("train", "train"), ("val", "validation")):
        rows = [
            {"image": {"bytes": _jpeg(image), "path": f"{image}.jpg"}, "labels": [LABELS.index(x) for x in labels]}
            for image, (labels, part) in IMAGES.items()
            if part == split
        ]
        parts[name] = datasets.Dataset.from_list(rows, features=features)
    datasets.DatasetDict(parts).save_to_disk(folder)


def write_webdataset(folder: Path) -> None:
    folder.mkdir()
    for split in ("train", "val"):
        with tarfile.open(folder / f"{split}-000000.tar", "w") as tar:
            for name, (labels, part) in IMAGES.items():
                if part == split:
                    parts = ((f"{name}.jpg", _jpeg(name)), (f"{name}.json", json.dumps({"labels": labels}).encode()))
                    for member, data in parts:
                        info = tarfile.TarInfo(member)
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))


def write_coco(folder: Path) -> None:
    for split in ("train", "val"):
        names = [name for name, (_, part) in IMAGES.items() if part == split]
        (folder / f"{split}2017").mkdir(parents=True)
        for name in names:
            (folder / f"{split}2017" / f"{name}.jpg").write_bytes(_jpeg(name))
        left, top, right, bottom = BOX
        images = [
            {"id": i, "file_name": f"{name}.jpg", "width": SIZE[0], "height": SIZE[1]} for i, name in enumerate(names)
        ]
        annotations = [
            {
                "image_id": i,
                "category_id": 10 + LABELS.index(label),
                "bbox": [left, top, right - left, bottom - top],
                "iscrowd": 0,
                "segmentation": [[left, top, right, top, right, bottom, left, bottom]],
            }
            for i, name in enumerate(names)
            for label in IMAGES[name][0]
        ]
        annotations = [{"id": i, **entry} for i, entry in enumerate(annotations)]
        categories = [{"id": 10 + i, "name": label} for i, label in enumerate(LABELS)]
        content = {"annotations": annotations, "images": images, "categories": categories}
        _json(folder / "annotations" / f"instances_{split}2017.json", content)


def write_voc(folder: Path) -> None:
    _photos(folder / "JPEGImages")
    left, top, right, bottom = BOX
    for name, (labels, _) in IMAGES.items():
        box = f"<xmin>{left + 1}</xmin><ymin>{top + 1}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
        objects = "".join(
            f"<object><name>{label}</name><difficult>0</difficult><bndbox>{box}</bndbox></object>" for label in labels
        )
        size = f"<size><width>{SIZE[0]}</width><height>{SIZE[1]}</height><depth>3</depth></size>"
        xml = f"<annotation><filename>{name}.jpg</filename>{size}{objects}</annotation>"
        _lines(folder / "Annotations" / f"{name}.xml", [xml])
    for split in ("train", "val"):
        _lines(
            folder / "ImageSets" / "Main" / f"{split}.txt",
            [name for name, (_, part) in IMAGES.items() if part == split],
        )


def write_yolo(folder: Path) -> None:
    left, top, right, bottom = BOX
    shares = (
        (left + right) / 2 / SIZE[0],
        (top + bottom) / 2 / SIZE[1],
        (right - left) / SIZE[0],
        (bottom - top) / SIZE[1],
    )
    for name, (labels, split) in IMAGES.items():
        (folder / "images" / split).mkdir(parents=True, exist_ok=True)
        (folder / "images" / split / f"{name}.jpg").write_bytes(_jpeg(name))
        lines = [" ".join(map(str, (LABELS.index(label), *shares))) for label in labels]
        _lines(folder / "labels" / split / f"{name}.txt", lines)
    names = [f"  {i}: {label}" for i, label in enumerate(LABELS)]
    _lines(
        folder / "data.yaml", ["path: ../datasets/small", "train: images/train", "val: images/val", "names:", *names]
    )


def write_open_images(folder: Path) -> None:
    mids = {label: f"/m/0{i}x" for i, label in enumerate(LABELS)}
    _csv(folder / "oidv7-class-descriptions.csv", [["LabelName", "DisplayName"], *([m, x] for x, m in mids.items())])
    for split, place in (("train", "train"), ("val", "validation")):
        names = [name for name, (_, part) in IMAGES.items() if part == split]
        (folder / place).mkdir()
        for name in names:
            (folder / place / f"{name}.jpg").write_bytes(_jpeg(name))
        rows = [[n, "verification", mids[x], int(x in IMAGES[n][0])] for n in names for x in LABELS]
        header = ["ImageID", "Source", "LabelName", "Confidence"]
        _csv(folder / f"oidv7-{place}-annotations-human-imagelabels.csv", [header, *rows])


def write_nus_wide(folder: Path) -> None:
    _lines(folder / "ConceptsList" / "Concepts81.txt", list(LABELS))
    _photos(folder / "Flickr" / "things")
    for split, place in (("train", "Train"), ("val", "Test")):
        names = [name for name, (_, part) in IMAGES.items() if part == split]
        _lines(folder / "ImageList" / f"{place}Imagelist.txt", [f"things\\{name}.jpg" for name in names])
        for label in LABELS:
            file = folder / "Groundtruth" / "TrainTestLabels" / f"Labels_{label}_{place}.txt"
            _lines(file, [str(int(label in IMAGES[name][0])) for name in names])


def write_label_studio(folder: Path) -> None:
    _photos(folder / "media")
    tasks = []
    for i, (name, (labels, _)) in enumerate(IMAGES.items(), 1):
        choice = {"type": "choices", "from_name": "choice", "to_name": "image", "value": {"choices": list(labels)}}
        image = f"/data/upload/1/0a1b2c3{i}-{name}.jpg"
        tasks.append({"id": i, "data": {"image": image}, "annotations": [{"id": i, "result": [choice]}]})
    _json(folder / "project-1.json", tasks)


def write_fiftyone(folder: Path) -> None:
    _photos(folder / "data")
    samples = [
        {
            "filepath": f"data/{name}.jpg",
            "tags": [split],
            "ground_truth": {
                "_cls": "Classifications",
                "classifications": [{"_cls": "Classification", "label": label} for label in labels],
            },
        }
        for name, (labels, split) in IMAGES.items()
    ]
    _json(folder / "samples.json", {"samples": samples})
    _json(folder / "metadata.json", {"name": "small", "media_type": "image"})


def write_folders(folder: Path) -> None:
    photos = _photos(folder.parent / "all")
    for name, (labels, split) in IMAGES.items():
        for label in labels:
            (folder / split / label).mkdir(parents=True, exist_ok=True)
            shutil.copy(photos / f"{name}.jpg", folder / split / label)


@dataclass(frozen=True)
class Case:
    """How a format is written, and what it cannot tell."""

    write: Callable[[Path], None]
    splits: bool = True
    val: str = "val"  # what our validation part is called there
    boxes: bool = False
    names: bool = True  # images keep their file names


CASES = {
    "csv": Case(write_csv),
    "jsonl": Case(write_jsonl),
    "json": Case(write_json),
    "parquet": Case(write_parquet),
    "imagefolder": Case(write_imagefolder),
    "hf-datasets": Case(write_hf_datasets, names=False),
    "webdataset": Case(write_webdataset),
    "coco": Case(write_coco, boxes=True),
    "voc": Case(write_voc, boxes=True),
    "yolo": Case(write_yolo, boxes=True),
    "open-images": Case(write_open_images),
    "nus-wide": Case(write_nus_wide, val="test"),
    "label-studio": Case(write_label_studio, splits=False),
    "fiftyone": Case(write_fiftyone),
    "folders": Case(write_folders),
}


def test_no_format_is_forgotten() -> None:
    assert set(CASES) == set(FORMATS) - {"nus-wide-925"}  # whose labels are others: tested on its own


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_read_back_equal(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    case.write(tmp_path / "data")
    table = read_table(DataConfig(path=str(tmp_path / "data")))
    assert table.notes[0].startswith(f"read as {FORMATS[name].title} (")
    _check(table, case)
    forced = read_table(DataConfig(path=str(tmp_path / "data"), format=name))
    _check(forced, case)
    for key in table.keys:
        assert table.source.read(str(key)).size == SIZE


def _check(table: Table, case: Case) -> None:
    assert table.labels.names == LABELS
    names = [str(key).replace("\\", "/").rpartition("/")[2].partition(".")[0] for key in table.keys]
    order = names if case.names else list(IMAGES)
    assert sorted(order) == sorted(IMAGES)
    expected = [[int(label in IMAGES[name][0]) for label in LABELS] for name in order]
    assert table.matrix.tolist() == expected
    if case.splits:
        assert table.split is not None
        assert table.split.tolist() == [{"train": "train", "val": case.val}[IMAGES[name][1]] for name in order]
    else:
        assert table.split is None
    if case.boxes:
        assert table.objects is not None
        assert len(table.objects) == sum(len(labels) for labels, _ in IMAGES.values())
        assert np.allclose(table.objects.box, BOX)
    else:
        assert table.objects is None

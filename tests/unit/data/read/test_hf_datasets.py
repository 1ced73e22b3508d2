"""Folders written by `datasets` itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from shard_files import Sample, labels_of, make_samples

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.data.read.hf_datasets import FORMAT
from manylabel.data.shard.packed import find_packed
from manylabel.data.table import Table
from manylabel.error import DataError, DecodeError

pyarrow = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets", reason="needs Hugging Face datasets to write its folders")

COLOURS = ["red", "green", "blue", "white"]


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return make_samples(tmp_path / "photos", 6)


def _read(path: Path, **more: Any) -> Table:
    return read_table(DataConfig(path=str(path), **more))


def _dataset(samples: list[Sample], labels: Any = None) -> Any:
    many = labels or datasets.Sequence(datasets.ClassLabel(names=COLOURS))
    features = datasets.Features({"image": datasets.Image(), "labels": many, "note": datasets.Value("string")})
    rows = {
        "image": [{"bytes": image, "path": f"{name}.jpg"} for name, image, _ in samples],
        "labels": [[COLOURS.index(label) for label in names] for *_, names in samples],
        "note": ["x"] * len(samples),
    }
    return datasets.Dataset.from_dict(rows, features=features)


def _save(dataset: Any, path: Path, **more: Any) -> Path:
    datasets.disable_progress_bars()
    dataset.save_to_disk(str(path), **more)
    return path


def test_splits_classes_and_bytes(tmp_path: Path, samples: list[Sample]) -> None:
    both = datasets.DatasetDict({"train": _dataset(samples[:4]), "validation": _dataset(samples[4:])})
    table = _read(_save(both, tmp_path / "d"))
    assert "(dataset_dict.json)" in table.notes[0]
    assert table.keys.tolist() == [f"train/{i:07d}" for i in range(4)] + [f"validation/{i:07d}" for i in range(2)]
    assert table.split is not None
    assert table.split.tolist() == ["train"] * 4 + ["val"] * 2
    assert table.labels.names == tuple(COLOURS)
    assert labels_of(table) == [sorted(labels, key=COLOURS.index) for *_, labels in samples]
    for key, (_, image, _) in zip(table.keys, samples, strict=True):
        assert table.source.raw(str(key)) == image  # type: ignore[attr-defined]
    assert table.source.read("train/0000001").size == table.source.describe("train/0000001") == (96, 72)
    assert len({table.source.stamp(str(key)) for key in table.keys}) == 6


def test_one_part_in_several_files_and_a_selection(tmp_path: Path, samples: list[Sample]) -> None:
    chosen = _dataset(samples).select([5, 0, 3])
    table = _read(_save(chosen, tmp_path / "d", num_shards=2))
    assert table.split is None
    assert table.keys.tolist() == [f"data/{i:07d}" for i in range(3)]
    assert [table.source.raw(str(key)) for key in table.keys] == [samples[i][1] for i in (5, 0, 3)]  # type: ignore[attr-defined]
    packed = find_packed(tmp_path / "d")
    assert packed is not None
    assert [image.name for image in packed] == [f"{tmp_path}/d:{i}" for i in range(3)]
    with pytest.raises(DecodeError, match="no 'data/0000003'"):
        table.source.read("data/0000003")


def test_names_in_a_list(tmp_path: Path, samples: list[Sample]) -> None:
    features = datasets.Features({"image": datasets.Image(), "tags": datasets.Sequence(datasets.Value("string"))})
    rows = {
        "image": [{"bytes": image, "path": None} for _, image, _ in samples],
        "tags": [labels for *_, labels in samples],
    }
    table = _read(_save(datasets.Dataset.from_dict(rows, features=features), tmp_path / "d"))
    assert labels_of(table) == [sorted(labels) for *_, labels in samples]


def test_images_that_are_files_elsewhere_must_be_allowed(tmp_path: Path, samples: list[Sample]) -> None:
    """A Dataset of paths, saved without embedding."""
    folder = tmp_path / "photos" / "images"
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    rows = {"image": [{"bytes": None, "path": str(folder / "photo000.jpg")}] * 2, "label": [0, 1]}
    path = _save(datasets.Dataset.from_dict(rows, features=features), tmp_path / "d")
    (file,) = path.glob("*.arrow")
    stored = pyarrow.ipc.open_stream(file.read_bytes()).read_all()
    kind = stored.schema.field("image").type
    bare = stored.set_column(0, pyarrow.field("image", kind), pyarrow.array(rows["image"], kind))
    with pyarrow.ipc.new_stream(str(file), bare.schema) as writer:
        writer.write_table(bare)
    with pytest.raises(DecodeError, match=r"photo000\.jpg', which is not in the folder of the data"):
        _read(path).source.read("data/0000000")
    assert _read(path, images=str(folder)).source.read("data/0000000").size == (96, 72)


def test_damaged_folders(tmp_path: Path, samples: list[Sample]) -> None:
    path = _save(datasets.DatasetDict({"train": _dataset(samples[:3]), "test": _dataset(samples[3:])}), tmp_path / "d")
    (arrow,) = (path / "test").glob("*.arrow")
    whole = arrow.read_bytes()
    for end in (len(whole) // 2, 10, 0):
        arrow.write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"test/.*\.arrow is cut off or damaged"):
            _read(path)
    arrow.unlink()
    with pytest.raises(DataError, match=r"state\.json: the data file '.*\.arrow' is not there"):
        _read(path)
    state = path / "test" / "state.json"
    state.write_text(json.dumps({"_data_files": [{"filename": "../../photos/x.arrow"}]}))
    with pytest.raises(DataError, match=r"the data file '\.\./\.\./photos/x\.arrow' is not there"):
        _read(path)
    state.write_text('{"_data_files": [')
    with pytest.raises(DataError, match=r"state\.json, row 1: cut off or no valid JSON"):
        _read(path)
    (path / "dataset_dict.json").write_text('{"splits": ["train", "../train"]}')
    with pytest.raises(DataError, match=r"no folder for split '\.\./train'"):
        _read(path)
    (path / "dataset_dict.json").write_text("{}")
    with pytest.raises(DataError, match=r"dataset_dict\.json names no splits"):
        _read(path)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    assert FORMAT.sniff(tmp_path) == ""
    (tmp_path / "state.json").write_text("{}")
    assert FORMAT.sniff(tmp_path) == ""
    assert FORMAT.sniff(tmp_path / "state.json") == ""


@pytest.mark.usefixtures("settled")
def test_a_changed_file_that_a_cell_names_is_noticed(tmp_path: Path, samples: list[Sample]) -> None:
    kind = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}  # of an Image it would save the bytes
    features = datasets.Features({"image": kind, "labels": datasets.Value("string")})
    cells = [{"bytes": None, "path": f"{name}.jpg"} for name, *_ in samples[:2]]
    dataset = datasets.Dataset.from_dict({"image": cells, "labels": ["a", "b"]}, features=features)
    path = _save(dataset, tmp_path / "d")
    for name, image, _ in samples[:2]:
        (path / f"{name}.jpg").write_bytes(image)
    table = _read(path)
    before = [table.source.stamp(str(key)) for key in table.keys]
    file = path / f"{samples[0][0]}.jpg"
    os.utime(file, ns=(1, 1))
    again: Any = _read(path).source
    assert again.raw(str(table.keys[0])) == samples[0][1]
    assert again.stamp(str(table.keys[0])) != before[0]
    assert again.stamp(str(table.keys[1])) == before[1]
    file.unlink()
    assert str(file) in before[0]
    assert str(file) not in again.stamp(str(table.keys[0]))

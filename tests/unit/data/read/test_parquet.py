from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_files import Sample, labels_of, make_samples, parquet_table, write_parquet_shards

from manylabel.config import DataConfig
from manylabel.data.read import read_table
from manylabel.data.read.parquet import FORMAT
from manylabel.data.table import Table
from manylabel.error import DataError, DecodeError
from manylabel.labels import UNKNOWN

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return make_samples(tmp_path / "photos", 6)


def _read(path: Path, **more: Any) -> Table:
    return read_table(DataConfig(path=str(path), **more))


def _write(path: Path, columns: dict[str, Any], features: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table(columns)
    if features is not None:
        told = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": told})
    parquet.write_table(table, path)
    return path


def test_a_folder_of_shards_with_images(tmp_path: Path, samples: list[Sample]) -> None:
    table = _read(write_parquet_shards(tmp_path / "p", samples, shards=2, group=2))
    assert table.keys.tolist() == [f"part-{s:05d}-of-00002/{row:07d}" for s in (0, 1) for row in range(3)]
    assert labels_of(table) == [sorted(samples[i][2]) for i in (0, 2, 4, 1, 3, 5)]
    assert "read as Parquet (2 files part-00000-of-00002.parquet …)" in table.notes[0]
    for key, i in zip(table.keys, (0, 2, 4, 1, 3, 5), strict=True):
        assert table.source.raw(str(key)) == samples[i][1]  # type: ignore[attr-defined]
    assert table.source.describe(str(table.keys[0])) == (96, 72)
    assert table.source.stamp(str(table.keys[0])) != table.source.stamp(str(table.keys[1]))


def test_the_images_are_not_read_with_thelabels_of(
    tmp_path: Path, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_parquet_shards(tmp_path / "p", samples)
    asked: list[list[str]] = []
    original = parquet.ParquetFile.iter_batches

    def watching(self: Any, size: int, *, columns: list[str], **more: Any) -> Any:
        asked.append(columns)
        return original(self, size, columns=columns, **more)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", watching)
    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", None)
    _read(folder)
    assert asked
    assert set(map(tuple, asked)) == {("labels",)}


def test_splits_from_file_names(tmp_path: Path, samples: list[Sample]) -> None:
    for name, part in (("train", samples[:3]), ("validation", samples[3:5]), ("test", samples[5:])):
        columns = {column: parquet_table(part)[column] for column in ("image", "labels")}
        _write(tmp_path / "data" / f"{name}-00000-of-00001.parquet", columns)
    table = _read(tmp_path)
    assert table.split is not None
    assert sorted(table.split.tolist()) == ["test", "train", "train", "train", "val", "val"]
    assert table.keys[table.split == "test"].tolist() == ["data/test-00000-of-00001/0000000"]


@pytest.mark.parametrize("wrap", ["plain", "Sequence", "List", "old"])
def test_class_numbers_get_their_names(tmp_path: Path, samples: list[Sample], wrap: str) -> None:
    names = ["cat", "dog", "owl"]
    feature: Any = {"names": names, "_type": "ClassLabel"}
    feature = {"plain": feature, "old": [feature]}.get(wrap, {"feature": feature, "_type": wrap})
    values: list[Any] = [1, 0, 1] if wrap == "plain" else [[1, 2], [], [0]]
    images = parquet_table(samples[:3])["image"]
    features = {"image": {"_type": "Image"}, "label": feature}
    table = _read(_write(tmp_path / "x.parquet", {"image": images, "label": values}, features))
    assert table.labels.names == tuple(names)  # in their own order, with the one that no image has
    assert labels_of(table) == ([["dog"], ["cat"], ["dog"]] if wrap == "plain" else [["dog", "owl"], [], ["cat"]])


def test_labels_that_were_held_back_are_unknown(tmp_path: Path, samples: list[Sample]) -> None:
    features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    columns = {"image": parquet_table(samples[:2])["image"], "label": [1, -1]}
    table = _read(_write(tmp_path / "x.parquet", columns, features))
    assert table.matrix[1].tolist() == [UNKNOWN, UNKNOWN]
    columns["label"] = [1, 5]
    with pytest.raises(DataError, match=r"x\.parquet, row 1, field 'label': class 5, but there are only 2"):
        _read(_write(tmp_path / "x.parquet", columns, features))


@pytest.mark.parametrize("by", ["struct of lists", "list of structs"])
def test_objects(tmp_path: Path, samples: list[Sample], by: str) -> None:
    names = {"names": ["cat", "dog"], "_type": "ClassLabel"}
    feature = {"feature": {"bbox": {"_type": "Sequence"}, "category": names}, "_type": "Sequence"}
    if by == "struct of lists":
        objects: list[Any] = [{"bbox": [[1.0, 2.0, 30.0, 40.0]], "category": [1]}, {"bbox": [], "category": []}]
    else:
        objects = [[{"bbox": [1.0, 2.0, 30.0, 40.0], "category": 1}], []]
    columns = {"image": parquet_table(samples[:2])["image"], "objects": objects}
    table = _read(_write(tmp_path / "x.parquet", columns, {"objects": feature}))
    assert labels_of(table) == [["dog"], []]
    assert table.objects is not None
    assert table.objects.box.tolist() == [[1.0, 2.0, 31.0, 42.0]]


@pytest.mark.parametrize("name", ["image", "img", "jpg", "image_bytes", "content"])
@pytest.mark.parametrize("large", [False, True])
def test_plain_bytes_and_delimitedlabels_of(tmp_path: Path, samples: list[Sample], name: str, large: bool) -> None:
    kind = pyarrow.large_binary() if large else pyarrow.binary()
    images = pyarrow.array([image for _, image, _ in samples], kind)
    texts = ["|".join(labels) for *_, labels in samples]
    path = _write(
        tmp_path / "x.parquet", {name: images, "labels": texts, "path": ["p.jpg"] * 6, "split": ["train"] * 5 + ["val"]}
    )
    table = _read(path)
    assert labels_of(table) == [sorted(labels) for *_, labels in samples]
    assert table.source.read(str(table.keys[2])).size == (96, 72)
    assert table.split is not None
    assert table.split.tolist() == ["train"] * 5 + ["val"]


def test_widelabels_of(tmp_path: Path, samples: list[Sample]) -> None:
    columns = {"image": parquet_table(samples[:3])["image"], "red": [1, 0, None], "blue": [True, False, True]}
    table = _read(_write(tmp_path / "x.parquet", columns))
    assert table.labels.names == ("red", "blue")
    assert table.matrix.tolist() == [[1, 1], [0, 0], [UNKNOWN, 1]]


def test_a_table_of_labels_whose_images_are_files(tmp_path: Path, samples: list[Sample]) -> None:
    folder = tmp_path / "photos"
    columns = {"file_name": [f"{name}.jpg" for name, *_ in samples], "labels": [labels for *_, labels in samples]}
    _write(folder / "labels.parquet", columns)
    for path in (folder, folder / "labels.parquet"):
        table = _read(path)
        assert table.keys.tolist() == columns["file_name"]
        assert labels_of(table) == [sorted(labels) for *_, labels in samples]
        assert "images are in images/" in table.notes
    columns["file_name"][2] = "gone.jpg"
    _write(folder / "labels.parquet", columns)
    with pytest.raises(DataError, match=r"labels\.parquet, row 2: 'gone\.jpg' is not there"):
        _read(folder)
    columns["file_name"][2] = "../gone.jpg"
    _write(folder / "labels.parquet", columns)
    with pytest.raises(DataError, match=r"labels\.parquet, row 2: '\.\./gone\.jpg' leads out"):
        _read(folder)


def test_errors_name_the_file(tmp_path: Path, samples: list[Sample]) -> None:
    images = parquet_table(samples[:2])["image"]
    two = {"left": images, "right": images, "labels": [["a"], ["b"]]}
    for columns, message in (
        (two, r"x\.parquet: columns 'left' and 'right' all hold images.*ignore_columns=\[right\]"),
        ({"image": images}, "no field with labels"),
        ({"image": images, "labels": [["<script>"], []]}, r"x\.parquet, row 0: label '<script>'"),
        (
            {"image": images, "labels": [["a"], ["b"]], "split": ["train", "sunday"]},
            r"x\.parquet, row 1: split 'sunday'",
        ),
        ({"labels": [["a"], ["b"]], "text": ["x", "y"]}, "no field with the image files"),
        ({"image": [[1, 2], [3]], "labels": [["a"], ["b"]]}, r"x\.parquet, row 0: field 'image' is \[1, 2\]"),
        ({"image": images.slice(0, 0), "labels": pyarrow.array([], pyarrow.list_(pyarrow.string()))}, "has no rows"),
    ):
        with pytest.raises(DataError, match=message):
            _read(_write(tmp_path / "x.parquet", columns))
    table = _read(_write(tmp_path / "x.parquet", two), ignore_columns=("right",))
    assert len(table) == 2
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"x\.parquet is cut off or no Parquet file"):
        _read(tmp_path / "x.parquet")


def test_shards_that_do_not_fit_together(tmp_path: Path, samples: list[Sample]) -> None:
    folder = write_parquet_shards(tmp_path / "p", samples)
    _write(folder / "zzz.parquet", {"image": parquet_table(samples[:1])["image"], "tags": [["a"]]})
    with pytest.raises(
        DataError, match=r"zzz\.parquet has other columns than the files before it \('labels', 'tags'\)"
    ):
        _read(folder)
    twice = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"twice\.parquet: 2 columns are called 'a'"):
        _read(tmp_path / "twice.parquet")


def test_sniffing_never_raises(tmp_path: Path) -> None:
    assert FORMAT.sniff(tmp_path) == ""
    (tmp_path / "x.parquet").write_bytes(b"nonsense")
    assert FORMAT.sniff(tmp_path) == ""
    assert FORMAT.sniff(tmp_path / "x.parquet") == "Parquet file"
    assert FORMAT.sniff(tmp_path / "p-{0..3}.parquet") == "pattern of Parquet files"
    (tmp_path / "folder.parquet").mkdir()
    assert FORMAT.sniff(tmp_path / "folder.parquet") == ""


def _write_named(path: Path, *names: str, more: dict[str, Any] | None = None) -> Path:
    """Cells that name files instead of holding images."""
    kind = parquet_table([]).schema.field("image").type
    cells = pyarrow.array([{"bytes": None, "path": name} for name in names], kind)
    return _write(
        path, {"image": cells, "labels": [["a"] if i % 2 else ["b"] for i in range(len(names))]} | (more or {})
    )


@pytest.mark.usefixtures("settled")
def test_a_changed_file_that_a_cell_names_is_noticed(tmp_path: Path, samples: list[Sample]) -> None:
    (tmp_path / "d").mkdir()
    for name, image, _ in samples[:2]:
        (tmp_path / "d" / f"{name}.jpg").write_bytes(image)
    (tmp_path / "outside.jpg").write_bytes(samples[0][1])
    names = [f"{name}.jpg" for name, *_ in samples[:2]]
    path = _write_named(tmp_path / "d" / "x.parquet", *names, "gone.jpg", "../outside.jpg", "\0", "")

    def stamps() -> list[str]:
        source = _read(path).source
        return [source.stamp(f"x/{row:07d}") for row in range(6)]

    before = stamps()
    assert len(set(before)) == 6
    assert stamps() == before
    (tmp_path / "d" / names[0]).write_bytes(samples[2][1])
    os.utime(tmp_path / "outside.jpg", ns=(1, 1))
    after = stamps()
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, False, False, False, False, False]
    (tmp_path / "d" / "gone.jpg").write_bytes(b"x")
    assert stamps()[2] != before[2]


def test_stamps_do_not_read_the_images(tmp_path: Path, samples: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    source = _read(write_parquet_shards(tmp_path / "p", samples, shards=1)).source
    read = []
    original = parquet.ParquetFile.read_row_group

    def counting(self: Any, i: int, **more: Any) -> Any:
        read.append((i, more["columns"]))
        return original(self, i, **more)

    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", counting)
    for row in range(6):
        source.stamp(f"part-00000-of-00001/{row:07d}")
    assert read == [(0, ["image.path"]), (1, ["image.path"])]
    plain = _read(
        _write(tmp_path / "b.parquet", {"image": [image for _, image, _ in samples], "labels": ["a", "b"] * 3})
    )
    plain.source.stamp("b/0000000")
    assert len(read) == 2


@pytest.mark.parametrize("struct", [False, True])
def test_equal_images_take_memory_once(tmp_path: Path, samples: list[Sample], struct: bool) -> None:
    """A few hundred bytes can stand for gigabytes, and the footer counts an image once that is in it many times."""
    image = samples[0][1] + bytes(1 << 18)
    once = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 400, pyarrow.int32()), pyarrow.array([image]))
    cells = once.cast(pyarrow.binary())
    if struct:
        cells = pyarrow.StructArray.from_arrays([cells, pyarrow.array(["x" * 5000] * 400)], ["bytes", "path"])
    path = tmp_path / "x.parquet"
    columns = pyarrow.table({"image": cells, "labels": ["a", "b"] * 200})
    parquet.write_table(columns, path, compression="zstd", dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 20_000
    source: Any = _read(path).source
    before = pyarrow.total_allocated_bytes()
    assert source.raw("x/0000399") == image
    assert pyarrow.total_allocated_bytes() - before < 4 << 20  # 100 MB when each cell is kept
    source.stamp("x/0000399")
    assert pyarrow.total_allocated_bytes() - before < 4 << 20


@pytest.mark.parametrize("kind", ["binary", "large_binary"])
def test_images_of_any_encoding_are_what_they_were(tmp_path: Path, samples: list[Sample], kind: str) -> None:
    images = [image for _, image, _ in samples] * 3
    path = tmp_path / "x.parquet"
    columns = pyarrow.table({"image": pyarrow.array(images, kind), "labels": ["a", "b"] * 9})
    mixed = {"dictionary_pagesize_limit": 1500, "data_page_size": 1500, "write_batch_size": 1}
    for facts in ({"use_dictionary": False}, mixed):
        parquet.write_table(columns, path, row_group_size=7, **facts)
        table = _read(path)
        source: Any = table.source
        assert [source.raw(str(key)) for key in table.keys] == images


def test_a_damaged_footer_is_never_a_crash(tmp_path: Path, samples: list[Sample]) -> None:
    path = write_parquet_shards(tmp_path / "p", samples, shards=1) / "part-00000-of-00001.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"bytes", b"b\xfftes"))  # a name that is no text
    with pytest.raises(DataError, match=r"part-00000-of-00001\.parquet is cut off or no Parquet file"):
        _read(path)
    rng = np.random.default_rng(0)
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for at in rng.integers(start, len(whole), 2):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        try:
            source: Any = _read(path).source
            for row in range(6):
                with suppress(DecodeError):
                    source.stamp(f"part-00000-of-00001/{row:07d}")
                    source.raw(f"part-00000-of-00001/{row:07d}")
        except DataError:
            refused += 1
    assert refused > 10


def test_text_that_is_none_is_an_error_with_its_place(tmp_path: Path, samples: list[Sample]) -> None:
    bad = pyarrow.array([b"a", b"\xff", b"b"]).view(pyarrow.string())
    path = _write(tmp_path / "x.parquet", {"image": [image for _, image, _ in samples[:3]], "labels": bad})
    with pytest.raises(DataError, match=r"x\.parquet, after row 0: a value cannot be read"):
        _read(path)

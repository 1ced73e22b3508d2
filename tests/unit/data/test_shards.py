"""Shards of any kind: which files a path means, Parquet by row group, and images to be tagged without unpacking."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import write_photos
from shard_files import make_samples, parquet_table, tar_files, write_parquet_shards, write_tar, write_tar_shards

from manylabel.data.read.split_name import split_of_shard, splits_of_shards
from manylabel.data.shard.locate import expand_braces, find_shards, is_pattern
from manylabel.data.shard.packed import find_packed
from manylabel.data.shard.recent import Recent
from manylabel.error import DataError, DecodeError


def _read_there(source: object, key: str, answers: multiprocessing.Queue[bytes]) -> None:
    answers.put(source.raw(key))  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["tar", "parquet"])
def test_sources_go_to_other_processes(tmp_path: Path, kind: str) -> None:
    samples = make_samples(tmp_path, 7)
    if kind == "tar":
        packed = find_packed(write_tar_shards(tmp_path / "t", samples))
    else:
        packed = find_packed(write_parquet_shards(tmp_path / "p", samples))
    assert packed is not None
    source, key = packed.source, next(iter(packed)).key
    here = source.raw(key)  # opens a file, which a child must not share
    assert pickle.loads(pickle.dumps(source)).raw(key) == here  # noqa: S301 (pickled in this line)
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[bytes] = context.Queue()
    child = context.Process(target=_read_there, args=(source, key, answers))
    child.start()
    assert answers.get(timeout=120) == here
    child.join()
    assert source.raw(key) == here


def test_kept_things_are_let_go_by_weight() -> None:
    kept: Recent[str, bytes] = Recent(10)
    made: list[str] = []

    def get(key: str, size: int) -> bytes:
        return kept.get(key, lambda: made.append(key) or b"x" * size, len)  # type: ignore[func-returns-value]

    for key, size in (("a", 4), ("b", 4), ("a", 4), ("c", 4), ("a", 4), ("b", 4), ("huge", 99), ("huge", 99)):
        assert len(get(key, size)) == size
    assert made == ["a", "b", "c", "b", "huge"]


# --- which files ------------------------------------------------------------------------------------------------


def test_braces() -> None:
    assert expand_braces("s-{08..11}.tar") == ["s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar"]
    assert expand_braces("{a,b}/{0..1}.tar") == ["a/0.tar", "a/1.tar", "b/0.tar", "b/1.tar"]
    assert expand_braces("plain.tar") == ["plain.tar"]
    for wrong in ("{0..999999999999}.tar", "{5..1}.tar", "{0..9}{0..9999999}.tar", "{a.tar", "{{a}}.tar"):
        with pytest.raises(DataError):
            expand_braces(wrong)


def test_a_pattern_names_what_is_missing(tmp_path: Path) -> None:
    for i in (0, 1):
        write_tar(tmp_path / f"s-{i:02d}.tar", [(f"{i}.jpg", b"")])
    assert [shard.name for shard in find_shards(tmp_path / "s-{00..01}.tar", ".tar")] == ["s-00", "s-01"]
    assert [shard.name for shard in find_shards(tmp_path / "s-*.tar", ".tar")] == ["s-00", "s-01"]
    with pytest.raises(DataError, match=r"s-02\.tar does not exist \(1 of the 3 files"):
        find_shards(tmp_path / "s-{00..02}.tar", ".tar")
    with pytest.raises(DataError, match="no file matches"):
        find_shards(tmp_path / "t-*.tar", ".tar")
    (tmp_path / "{odd}").mkdir()
    assert not is_pattern(tmp_path / "{odd}")


def test_splits_in_names() -> None:
    names = {"train-00000-of-00012": "train", "validation-00000-of-00001": "val", "default/test/0000": "test"}
    names |= {
        "train/part-3": "train",
        "train2014_07": "train",
        "shard-003": None,
        "retraining": None,
        "v1.val.x-0": "val",
    }  # type: ignore[dict-item]
    assert {name: split_of_shard(name) for name in names} == names
    assert splits_of_shards(["train-0", "train-1"], []) == [
        None,
        None,
    ]  # nothing to hold it against: a part is held out
    notes: list[str] = []
    assert splits_of_shards(["train-0", "val-0", "train-1"], notes) == ["train", "val", "train"]
    assert notes == ["splits from the names of the shards: 2 train, 1 val"]


# --- Parquet ----------------------------------------------------------------------------------------------------


def test_parquet_images_by_row(tmp_path: Path) -> None:
    samples = make_samples(tmp_path, 13)
    packed = find_packed(write_parquet_shards(tmp_path / "p", samples))
    assert packed is not None
    assert len(packed) == 13
    told = {image.name.rpartition("/")[2]: image.source.raw(image.key) for image in packed}
    assert told["part-00000-of-00002.parquet:6"] == samples[12][1]
    assert told["part-00001-of-00002.parquet:0"] == samples[1][1]
    keys = np.array([image.key for image in packed])
    blocks = packed.source.blocks(keys)  # type: ignore[union-attr]
    assert blocks is not None
    assert blocks.ids.tolist() == [0] * 5 + [1] * 2 + [2] * 5 + [3]
    assert blocks.window >= 4  # all of it fits in memory, so that all of it is mixed
    assert blocks.window * 5 * max(len(image) for _, image, _ in samples) <= 130 << 20
    with pytest.raises(DecodeError, match="no 'part-00000-of-00002/0000099'"):
        packed.source.raw("part-00000-of-00002/0000099")


def test_a_row_group_is_read_once_for_its_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as parquet

    packed = find_packed(write_parquet_shards(tmp_path / "p", make_samples(tmp_path, 12), shards=1, group=6))
    assert packed is not None
    read = []
    original = parquet.ParquetFile.read_row_group

    def counting(self: parquet.ParquetFile, i: int, **more: object) -> object:
        read.append((i, more["columns"]))
        return original(self, i, **more)

    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", counting)
    for image in packed:
        image.read()
    assert read == [(0, ["image"]), (1, ["image"])]


def test_hostile_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    samples = make_samples(tmp_path, 4)
    path = tmp_path / "x.parquet"
    table = parquet_table(samples)
    cells = [
        {"bytes": None, "path": None},
        None,
        {"bytes": b"", "path": "../../secret.jpg"},
        {"bytes": b"<html>", "path": ""},
    ]
    parquet.write_table(table.set_column(0, "image", pyarrow.array(cells, table.schema.field("image").type)), path)
    packed = find_packed(path)
    assert packed is not None
    reasons = []
    for image in packed:
        with pytest.raises(DecodeError) as caught:
            image.read()
        reasons.append(str(caught.value))
    assert reasons[:2] == ["empty image cell"] * 2
    assert "'../../secret.jpg', which is not in the folder of the data" in reasons[2]
    assert "HTML" in reasons[3]

    parquet.write_table(table, path)
    packed = find_packed(path)
    assert packed is not None
    whole = path.read_bytes()
    for end in (len(whole) // 2, len(whole) - 5, 3, 0):
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"x\.parquet is cut off or no Parquet file"):
            find_packed(path)
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])  # the first page; the footer is whole
    damaged = find_packed(path)
    assert damaged is not None
    with pytest.raises(DecodeError, match=r"x\.parquet, row group 0 is damaged"):
        next(iter(damaged)).read()
    monkeypatch.setattr("manylabel.data.shard.parquet_source.LARGEST_GROUP", 1000)
    parquet.write_table(table, path)
    with pytest.raises(DataError, match=r"x\.parquet, row group 0: .*smaller ones"):
        find_packed(path)


def test_a_cell_may_name_a_file_in_the_folder_of_the_data(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    write_photos(tmp_path, 1)
    kind = parquet_table([]).schema.field("image").type
    import pyarrow

    cells = pyarrow.array([{"bytes": None, "path": "images/photo000.jpg"}], kind)
    parquet.write_table(pyarrow.table({"image": cells}), tmp_path / "x.parquet")
    packed = find_packed(tmp_path / "x.parquet")
    assert packed is not None
    assert next(iter(packed)).read().size == (96, 72)


# --- tagging ----------------------------------------------------------------------------------------------------


def test_images_to_tag_are_named_by_shard_and_member(tmp_path: Path) -> None:
    from manylabel.inference.images import find_images

    samples = make_samples(tmp_path, 4)
    folder = write_tar_shards(tmp_path / "t", samples, shards=2)
    table = write_parquet_shards(tmp_path / "p", samples, shards=1) / "part-00000-of-00001.parquet"
    photo = tmp_path / "images" / "photo000.jpg"
    found = find_images([folder, photo, table, tmp_path / "gone.jpg", folder / "shard-{000..001}.tar"])
    names = [image.name if not isinstance(image, Path) else str(image) for image in found]
    tar = [f"{folder}/shard-000.tar:photo000.jpg", f"{folder}/shard-000.tar:photo002.jpg"]
    tar += [f"{folder}/shard-001.tar:photo001.jpg", f"{folder}/shard-001.tar:photo003.jpg"]
    assert names == [*tar, str(photo), *(f"{table}:{i}" for i in range(4)), f"{tmp_path}/gone.jpg", *tar]
    assert len(found) == len(names)


def test_paths_that_cannot_be_tagged(tmp_path: Path) -> None:
    from manylabel.inference.images import find_images

    write_tar(tmp_path / "text" / "a.tar", [("a.txt", b"x")])
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "void").mkdir()
    for path, message in (
        ("text/a.tar", "there is no image in .*a.tar"),
        ("x.tar.gz", "x.tar.gz is compressed.*decompress the shards"),
        ("void", "there is no image in the folder"),
        ("gone.jpg", "gone.jpg does not exist"),
        ("s-{0..3}.tar", "s-0.tar does not exist"),
    ):
        with pytest.raises(DataError, match=message):
            find_images([tmp_path / path])


def test_tagging_inside_shards_equals_tagging_files(tmp_path: Path, tiny_settings: list[str]) -> None:
    from conftest import write_labelled_photos

    from manylabel import run
    from manylabel.inference.images import find_images
    from manylabel.inference.predictor import Predictor

    photos = write_labelled_photos(tmp_path / "photos", 16)
    run.train(str(photos), out=tmp_path / "run", settings=[*tiny_settings, "train.epochs=1", "data.workers=0"])
    samples = [(p.stem, p.read_bytes(), []) for p in sorted((photos / "images").iterdir())]
    samples[3] = ("photo003", b"", [])
    (photos / "images" / "photo003.jpg").write_bytes(b"")  # batches of other sizes may differ in the last bit
    write_tar(tmp_path / "s.tar", tar_files(samples))
    predictor = Predictor.load(tmp_path / "run")
    packed = predictor.predict(find_images([tmp_path / "s.tar"]))
    files = predictor.predict(find_images([photos / "images"]))
    assert packed[3].error == "empty file (0 bytes)"
    assert packed[3].image == f"{tmp_path}/s.tar:photo003.jpg"
    for inside, outside in zip(packed, files, strict=True):
        assert inside.error or inside.labels == outside.labels

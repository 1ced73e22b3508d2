from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shard_files import Sample, make_samples, tar_files, write_tar, write_tar_shards

from manylabel.config import DataConfig
from manylabel.data.read import find_format, read_table
from manylabel.data.read.webdataset import FORMAT
from manylabel.data.table import Table
from manylabel.error import DataError, DecodeError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return make_samples(tmp_path / "photos", 9)


def _read(path: Path, **more: Any) -> Table:
    return read_table(DataConfig(path=str(path), **more))


def _rows(table: Table) -> dict[str, list[str]]:
    names = table.labels.names
    return {
        str(k): [names[i] for i in (row == PRESENT).nonzero()[0]]
        for k, row in zip(table.keys, table.matrix, strict=True)
    }


def test_a_folder_of_shards(tmp_path: Path, samples: list[Sample]) -> None:
    table = _read(write_tar_shards(tmp_path / "s", samples))
    assert _rows(table) == {
        f"shard-{i % 3:03d}/{name}.jpg": sorted(labels)
        for i, (name, _, labels) in sorted(enumerate(samples), key=lambda pair: pair[0] % 3)
    }
    assert set(table.matrix.ravel().tolist()) == {PRESENT, ABSENT}
    assert table.split is None
    assert "read as WebDataset (3 tar shards)" in table.notes[0]
    assert table.name == "s"
    assert table.source.read("shard-001/photo004.jpg").size == (96, 72)
    assert table.source.raw("shard-001/photo004.jpg") == samples[4][1]  # type: ignore[attr-defined]


def test_one_shard_equals_the_folder_with_it(tmp_path: Path, samples: list[Sample]) -> None:
    folder = write_tar_shards(tmp_path / "s", samples, shards=1)
    one = _read(folder / "shard-000.tar")
    assert _rows(one) == _rows(_read(folder)) == _rows(_read(folder, format="webdataset"))


def test_splits_from_shards_folders_and_samples(tmp_path: Path, samples: list[Sample]) -> None:
    write_tar(tmp_path / "a" / "train-000.tar", tar_files(samples[:6]))
    write_tar(tmp_path / "a" / "val-000.tar", tar_files(samples[6:]))
    write_tar(tmp_path / "b" / "train" / "000.tar", tar_files(samples[:6]))
    write_tar(tmp_path / "b" / "validation" / "000.tar", tar_files(samples[6:]))
    write_tar(tmp_path / "c" / "x.tar", tar_files(samples[:6], split="train") + tar_files(samples[6:], split="dev"))
    for name in "abc":
        table = _read(tmp_path / name)
        assert table.split is not None
        assert table.split.tolist() == ["train"] * 6 + ["val"] * 3, name


def test_three_states_and_groups(tmp_path: Path, samples: list[Sample]) -> None:
    rows = [
        {"labels": ["red"], "unknown_labels": ["green"], "group": "g1"},
        {"labels": ["green", "red"], "group": "g1"},
    ]
    files = [
        file
        for (name, image, _), row in zip(samples, rows, strict=False)
        for file in ((f"{name}.jpg", image), (f"{name}.json", json.dumps(row).encode()))
    ]
    table = _read(write_tar(tmp_path / "x.tar", files))
    assert table.labels.names == ("green", "red")
    assert table.matrix.tolist() == [[UNKNOWN, PRESENT], [PRESENT, PRESENT]]
    assert table.groups is not None
    assert table.groups.tolist() == ["g1", "g1"]


@pytest.mark.parametrize(
    ("kind", "contents", "expected"),
    [
        ("cls", [b"0", b"2\n"], [["red"], ["blue"]]),
        ("cls", [b"0 1", b"2"], [["red", "green"], ["blue"]]),
        ("cls", [b"green", b"blue"], [["green"], ["blue"]]),
        ("txt", [b"red|blue", b"green"], [["red", "blue"], ["green"]]),
        ("txt", [b"red\nblue\n", b"green\n"], [["red", "blue"], ["green"]]),
        ("labels.txt", [b"red, blue", b"green"], [["red", "blue"], ["green"]]),
        ("json", [b'["red", "blue"]', b'{"label": 1}'], [["red", "blue"], ["green"]]),
        ("json", [b'{"tags": ["red"]}', b'{"tags": []}'], [["red"], []]),
    ],
)
def test_kinds_of_label_files(
    tmp_path: Path, samples: list[Sample], kind: str, contents: list[bytes], expected: list[list[str]]
) -> None:
    files = []
    for (name, image, _), content in zip(samples, contents, strict=False):
        files += [(f"in/{name}.{kind}", content), (f"in/{name}.jpg", image), (f"in/{name}.mask.png", b"not looked at")]
    write_tar(tmp_path / "s" / "000.tar", files)
    (tmp_path / "s" / "classes.txt").write_text("red\ngreen\nblue\n")
    table = _read(tmp_path / "s")
    assert [sorted(labels) for labels in _rows(table).values()] == [sorted(labels) for labels in expected]
    assert table.labels.names == ("red", "green", "blue")  # the order of classes.txt, with those that never occur
    assert f"labels from .{kind}" in table.notes


def test_numbers_without_names(tmp_path: Path, samples: list[Sample]) -> None:
    files = [
        file
        for i, (name, image, _) in enumerate(samples)
        for file in ((f"{name}.cls", b"%d" % (i % 3)), (f"{name}.jpg", image))
    ]
    table = _read(write_tar(tmp_path / "x.tar", files))
    assert table.labels.names == ("0", "1", "2")
    assert any("numbers without names" in note for note in table.notes)


def test_captions_are_no_labels(tmp_path: Path, samples: list[Sample]) -> None:
    """img2dataset puts a caption into .txt and facts into .json."""
    files = []
    for name, image, labels in samples:
        facts = {"caption": "a photo", "width": 96, "url": "x", "status": "success"}
        files += [(f"{name}.jpg", image), (f"{name}.txt", b"a photo"), (f"{name}.json", json.dumps(facts).encode())]
        files += [(f"{name}.cls", labels[0].encode() if labels else b"none")]
    assert "labels from .cls" in _read(write_tar(tmp_path / "x.tar", files)).notes
    bare = [(name, data) for name, data in files if not name.endswith(".cls")]
    with pytest.raises(DataError, match="no field with labels"):
        _read(write_tar(tmp_path / "y.tar", bare))


def test_a_shard_that_was_cut_off(tmp_path: Path, samples: list[Sample]) -> None:
    files = []
    for name, image, labels in samples[:4]:
        files += [(f"{name}.json", json.dumps({"labels": labels}).encode()), (f"{name}.jpg", image)]
    path = write_tar(tmp_path / "s.tar", files)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(samples[3][1]) + 50])  # in the last image
    table = _read(path)
    assert len(table) == 4
    assert any("s.tar: it is cut off in member 'photo003.jpg', 50 of" in note for note in table.notes)
    with pytest.raises(DecodeError, match=r"s\.tar ends after 50 of"):
        table.source.read("s/photo003.jpg")
    path.write_bytes(whole[: whole.rindex(b'{"labels"') + 5])  # in its labels: there is nothing to say about it
    assert _read(path).keys.tolist() == ["s/photo000.jpg", "s/photo001.jpg", "s/photo002.jpg"]


def test_errors_name_the_shard_and_the_member(tmp_path: Path, samples: list[Sample]) -> None:
    image, other = samples[0][1], samples[1][1]
    good = ("a.jpg", image), ("a.json", b'{"labels": ["red"]}')
    for files, message in (
        ([*good, ("b.jpg", other)], r"s\.tar, sample 'b' has no \.json as others have"),
        (
            [*good, ("b.jpg", other), ("b.json", b'{"labels": ["re')],
            r"s\.tar, member b\.json, row 1: cut off or no valid JSON",
        ),
        ([*good, ("b.jpg", other), ("b.json", b"7")], r"s\.tar, member b\.json: '7' is no object"),
        ([*good, ("b.jpg", other), ("b.json", b"\xff\xfe")], r"s\.tar, member b\.json: not UTF-8"),
        ([*good, ("b.jpg", other), ("b.json", b"[" * 100_000)], r"s\.tar, member b\.json"),
        ([*good, ("b.jpg", other), ("b.json", b'{"labels": [["x"]]}')], r"s\.tar, sample 'b', field 'labels'"),
        ([*good, ("b.jpg", other), ("b.json", b'{"labels": ["<script>"]}')], r"s\.tar, sample 'b': label '<script>'"),
        ([*good, ("b.jpg", other), ("b.json", b'{"labels": ["red"], "split": "x"}')], r"s\.tar, sample 'b': split 'x'"),
        ([*good, ("a.1.jpg", other)], None),
        (
            [*good, ("c.1.jpg", image), ("c.2.jpg", other)],
            r"s\.tar, sample 'c': c\.1\.jpg and c\.2\.jpg are one sample",
        ),
        ([*good, ("a.JPG", other)], r"s\.tar: member 'a\.JPG' is in it twice but for upper"),
        ([*good, ("../../b.jpg", other)], r"s\.tar: member '\.\./\.\./b\.jpg' leads out"),
        ([*good, ("/b.jpg", other)], r"s\.tar: member '/b\.jpg' leads out"),
        ([("a.jpg", image)], "its images have no labels"),
        ([("a.json", b"{}")], r"s\.tar holds no image"),
        ([], r"s\.tar holds no image"),
    ):
        path = write_tar(tmp_path / "s.tar", files)
        if message is None:
            assert len(_read(path)) == 1
            continue
        with pytest.raises(DataError, match=message):
            _read(path)


def test_a_class_that_is_not_in_the_list(tmp_path: Path, samples: list[Sample]) -> None:
    write_tar(tmp_path / "s" / "0.tar", [("a.jpg", samples[0][1]), ("a.cls", b"7")])
    (tmp_path / "s" / "classes.txt").write_text("red\ngreen\n")
    with pytest.raises(DataError, match=r"0\.tar, sample 'a', field 'labels': class 7, but there are only 2"):
        _read(tmp_path / "s")
    write_tar(tmp_path / "s" / "0.tar", [("a.jpg", samples[0][1]), ("a.cls", b"gren")])
    with pytest.raises(DataError, match="0.tar, sample 'a': .*did you mean 'green'"):
        _read(tmp_path / "s")


def test_compressed_shards(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "000.tar.gz").write_bytes(b"\x1f\x8b")
    for path in (tmp_path / "s", tmp_path / "s" / "000.tar.gz"):
        with pytest.raises(DataError, match=r"000\.tar\.gz is compressed.*decompress the shards to \.tar"):
            _read(path)


def test_an_archive_that_was_left_lying_is_no_data_set(tmp_path: Path, samples: list[Sample]) -> None:
    write_tar(
        tmp_path / "VOCtrainval.tar", [("VOC/JPEGImages/a.jpg", samples[0][1]), ("VOC/Annotations/a.xml", b"<a/>")]
    )
    assert FORMAT.sniff(tmp_path) == ""
    (tmp_path / "broken.tar").write_bytes(b"no tar")
    assert FORMAT.sniff(tmp_path) == ""
    assert FORMAT.sniff(tmp_path / "gone.tar") == ""
    (tmp_path / "loop").symlink_to(tmp_path)
    assert FORMAT.sniff(tmp_path) == ""


def test_a_pattern_opens(tmp_path: Path, samples: list[Sample]) -> None:
    folder = write_tar_shards(tmp_path / "s", samples)
    pattern = folder / "shard-{000..001}.tar"
    assert FORMAT.sniff(pattern) == "pattern of tar files"
    reading = FORMAT.open(pattern, DataConfig(path=str(pattern)))
    assert [record.key for record in reading.records()] == [
        f"shard-{i % 2:03d}/photo{n:03d}.jpg" for i in (0, 1) for n in (i, i + 3, i + 6)
    ]
    assert len(read_table(DataConfig(path=str(pattern)))) == 6


def test_find_format_sees_shards_before_anything_else(tmp_path: Path, samples: list[Sample]) -> None:
    folder = write_tar_shards(tmp_path / "s", samples)
    (folder / "labels.json").write_text("{}")
    assert find_format(DataConfig(path=str(folder)))[1].name == "webdataset"

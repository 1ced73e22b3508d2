"""Tar shards: every kind of tar, the index that is kept, and archives that are cut off, damaged or hostile."""

from __future__ import annotations

import io
import os
import tarfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from shard_files import write_tar

from manylabel.cache_folder import cache_folder
from manylabel.data.shard import tar_index
from manylabel.data.shard.locate import find_shards
from manylabel.data.shard.tar_index import TarIndex, open_index
from manylabel.data.shard.tar_source import TarSource
from manylabel.error import DataError, DecodeError

LONG = "a-folder-with-a-long-name/" * 9 + "photo-größe.jpg"


def _jpeg(colour: tuple[int, int, int] = (200, 10, 10), size: tuple[int, int] = (40, 30)) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "JPEG")
    return data.getvalue()


def _source(path: Path) -> TarSource:
    return TarSource.of(find_shards(path, ".tar"), path if path.is_dir() else path.parent)


@pytest.mark.parametrize("layout", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_kind_of_tar_gives_what_tarfile_gives(tmp_path: Path, layout: int) -> None:
    rng = np.random.default_rng(0)
    names = ["a.jpg", "x/b.jpg", "./c.jpg", "empty.txt", "folder/" * 20 + "d.jpg"]
    names += [] if layout == tarfile.USTAR_FORMAT else [LONG]
    files = [(name, rng.bytes(int(rng.integers(0, 2000)))) for name in names]
    path = write_tar(tmp_path / "s.tar", files, layout)
    with tarfile.open(path, "a", format=layout) as tar:  # what is no plain file is passed over
        for kind, name in ((tarfile.DIRTYPE, "dir"), (tarfile.SYMTYPE, "link.jpg"), (tarfile.LNKTYPE, "hard.jpg")):
            facts = tarfile.TarInfo(name)
            facts.type, facts.linkname = kind, "a.jpg"
            tar.addfile(facts)
        last = tarfile.TarInfo("last.jpg")
        last.size = 3
        tar.addfile(last, io.BytesIO(b"end"))
    source = _source(path)
    index = source.shards["s"]
    wanted = {name.removeprefix("./"): data for name, data in files} | {"last.jpg": b"end"}
    assert list(index.all_names()) == list(wanted)
    assert index.flaw == ""
    for name, data in wanted.items():
        assert source.raw(f"s/{name}") == data


def test_sizes_in_binary_and_concatenated_archives(tmp_path: Path) -> None:
    one = write_tar(tmp_path / "one.tar", [("a.jpg", b"A" * 700)], tarfile.GNU_FORMAT)
    data = bytearray(one.read_bytes())
    data[124:136] = b"\x80" + (700).to_bytes(11)  # GNU writes sizes over 8 GiB like this
    data[148:156] = b"        "
    data[148:156] = b"%06o\0 " % sum(data[:512])
    two = write_tar(tmp_path / "two.tar", [("b.jpg", b"B")])
    both = tmp_path / "both.tar"
    both.write_bytes(bytes(data) + two.read_bytes())
    source = _source(both)
    assert source.raw("both/a.jpg") == b"A" * 700
    assert source.raw("both/b.jpg") == b"B"
    both.write_bytes(bytes(data) + b"something else behind the end")
    assert list(open_index(both).all_names()) == ["a.jpg"]


@pytest.mark.usefixtures("settled")
def test_a_second_start_does_not_walk_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"1"), ("b.jpg", b"22")])
    first = open_index(path)

    def walk(*_: object) -> TarIndex:
        raise AssertionError("walked again")

    with monkeypatch.context() as patch:
        patch.setattr(tar_index, "_walk", walk)
        again = open_index(path)
        assert list(again.all_names()) == list(first.all_names())
        assert again.find("b.jpg") == 1
        assert again.find("c.jpg") is None
        os.utime(path, ns=(1, 1))
        with pytest.raises(AssertionError, match="walked again"):
            open_index(path)
    (kept,) = (cache_folder() / "shards").iterdir()
    whole = kept.read_bytes()
    for damage in (b"", b"nonsense", whole[:-40], whole.replace(b"a.jpg", b"c.jpg"), b"[" * 200_000, b"null\n"):
        kept.write_bytes(damage)
        assert list(open_index(path).all_names()) == ["a.jpg", "b.jpg"]


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("what", ["fifo", "folder", "link"])
def test_what_lies_where_an_index_is_kept_makes_way(tmp_path: Path, what: str) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"1"), ("b.jpg", b"22")])
    open_index(path)
    (kept,) = (cache_folder() / "shards").iterdir()
    (tmp_path / "theirs").write_bytes(kept.read_bytes().replace(b"a.jpg", b"c.jpg"))
    before = (tmp_path / "theirs").read_bytes()
    kept.unlink()
    {"fifo": os.mkfifo, "folder": Path.mkdir, "link": lambda at: at.symlink_to(tmp_path / "theirs")}[what](kept)
    assert list(open_index(path).all_names()) == ["a.jpg", "b.jpg"]
    assert kept.is_file()
    assert not kept.is_symlink()
    assert (tmp_path / "theirs").read_bytes() == before


@pytest.mark.usefixtures("settled")
def test_a_shard_of_equal_size_and_time_is_walked_again(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"1"), ("b.jpg", b"22")])
    open_index(path)
    facts = path.stat()
    write_tar(path, [("c.jpg", b"1"), ("d.jpg", b"22")])
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    assert list(open_index(path).all_names()) == ["c.jpg", "d.jpg"]


def test_every_name_of_a_large_shard_is_found(tmp_path: Path) -> None:
    """Hashes of 64 bits must not be compared as floats, which keep 53."""
    names = [f"{i:05d}.jpg" for i in range(3000)]
    index = open_index(write_tar(tmp_path / "s.tar", [(name, b"") for name in names]))
    assert [index.find(name) for name in names] == list(range(3000))
    assert index.hashes.dtype == np.uint64
    assert (index.hashes[1:] > index.hashes[:-1]).all()


def test_no_cache_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MANYLABEL_CACHE", str(tmp_path / "file"))
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"1")])
    assert list(open_index(path).all_names()) == ["a.jpg"]


def test_a_shard_that_was_cut_off_gives_its_complete_images(tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "whole.tar", [(f"{i}.jpg", _jpeg((i, 0, 0), (64, 64))) for i in range(4)])
    data = whole.read_bytes()
    with tarfile.open(whole) as tar:
        third = tar.getmember("2.jpg")
    cut = tmp_path / "cut.tar"
    for end, left, said in (
        (third.offset_data + 100, ["0.jpg", "1.jpg", "2.jpg"], "cut off in member '2.jpg', 100 of"),
        (third.offset + 100, ["0.jpg", "1.jpg"], "after member '1.jpg' without the mark of an end"),
        (third.offset_data, ["0.jpg", "1.jpg", "2.jpg"], "cut off in member '2.jpg', 0 of"),
    ):
        cut.write_bytes(data[:end])
        source = _source(cut)
        assert list(source.shards["cut"].all_names()) == left
        assert said in source.shards["cut"].flaw
        assert source.read("cut/1.jpg").size == (64, 64)
        if "2.jpg" in left:
            with pytest.raises(DecodeError, match=r"cut off: cut\.tar ends after \d+ of \d+ bytes"):
                source.read("cut/2.jpg")


def test_a_member_larger_than_the_file_is_not_believed(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"x" * 10), ("b.jpg", b"y")])
    data = bytearray(path.read_bytes())
    data[124:136] = b"\x80\0\0\0" + (1 << 62).to_bytes(8)
    data[148:156] = b"        "
    data[148:156] = b"%06o\0 " % sum(data[:512])
    path.write_bytes(data)
    source = _source(path)
    with pytest.raises(DecodeError, match="cut off"):
        source.raw("s/a.jpg")


def test_hostile_headers_are_refused_by_name(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"x" * 10), ("b.jpg", b"y")])
    good = path.read_bytes()
    for data, message in (
        (b"this is no tar at all" * 100, "s.tar is no tar file"),
        (good[:1024] + b"garbage!" * 64 + good[1536:], "damaged at byte 1024, after member 'a.jpg'"),
        (good[:1024] + b"7" + good[1025:], "damaged at byte 1024"),  # one byte of a name changed: wrong checksum
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match=message):
            open_index(path)
    path.write_bytes(b"")
    assert "it ends at once" in open_index(path).flaw
    bomb = write_tar(tmp_path / "bomb.tar", [("n" * (2 << 20) + ".jpg", b"")], tarfile.GNU_FORMAT)
    with pytest.raises(DataError, match=r"bomb\.tar is no tar file"):
        open_index(bomb)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_shards_give_an_answer_or_our_own_error(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT][seed % 3]
    names = [LONG if seed % 3 else "long.jpg", "a.jpg", "b.jpg"]
    path = write_tar(tmp_path / "s.tar", [(name, rng.bytes(300)) for name in names], layout)
    data = bytearray(path.read_bytes()[: int(rng.integers(100, 6000))])
    for at in rng.integers(0, len(data), 3):
        data[at] = rng.integers(0, 256)
    if len(data) >= 512:  # so that damage in the first header is looked at, too
        data[148:156] = b"        "
        data[148:156] = b"%06o\0 " % sum(data[:512])
    path.write_bytes(data)
    try:
        source = _source(path)
    except DataError:
        return
    for name in source.shards["s"].all_names():
        with suppress(DecodeError):
            assert len(source.raw(f"s/{name}")) <= len(data)


def test_a_member_that_is_there_twice(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"1"), ("b.jpg", b"1"), ("./a.jpg", b"2")])
    with pytest.raises(DataError, match=r"s\.tar: member 'a\.jpg' is in it twice"):
        open_index(path)


def test_what_systems_leave_behind_is_passed_over(tmp_path: Path) -> None:
    path = write_tar(
        tmp_path / "s.tar", [("._a.jpg", b"x"), ("a.jpg", b"1"), ("__MACOSX/a.jpg", b""), (".DS_Store", b"")]
    )
    assert list(open_index(path).all_names()) == ["a.jpg"]


def test_a_shard_that_changes_while_it_is_used(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", _jpeg())])
    source = _source(path)
    write_tar(path, [("b.jpg", b"y" * 9000), ("a.jpg", _jpeg((0, 0, 0)))])
    with pytest.raises(DecodeError, match="was changed while it was in use"):
        source.read("s/a.jpg")
    path.unlink()
    with pytest.raises(DecodeError, match=r"cannot read .*s\.tar"):
        source.read("s/a.jpg")


@pytest.mark.usefixtures("settled")
def test_stamps_change_with_the_shard(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", _jpeg()), ("b.jpg", _jpeg())])
    source = _source(path)
    before = source.stamp("s/a.jpg")
    assert before != source.stamp("s/b.jpg")
    assert _source(path).stamp("s/a.jpg") == before
    os.utime(path, ns=(5, 5))
    assert _source(path).stamp("s/a.jpg") != before


def test_sizes_come_from_the_header_and_images_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = io.BytesIO()
    Image.new("RGB", (40, 20)).save(turned, "JPEG", exif=exif)
    source = _source(write_tar(tmp_path / "s.tar", [("a.jpg", turned.getvalue())]))
    assert source.describe("s/a.jpg") == source.read("s/a.jpg").size == (20, 40)
    with pytest.raises(DecodeError, match="no 's/gone.jpg' in the shards"):
        source.read("s/gone.jpg")


def test_sizes_that_no_file_can_have_are_refused(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"x" * 10), ("b.jpg", b"y")])
    good = path.read_bytes()
    for size in (1 << 63, (1 << 88) - 1):
        path.write_bytes(good[:1024] + _with_size(good[1024:1536], size) + good[1536:])
        with pytest.raises(DataError, match=r"s\.tar is damaged at byte 1024, after member 'a\.jpg'"):
            open_index(path)
    path.write_bytes(good[:1024] + _with_size(good[1024:1536], (1 << 63) - 1) + good[1536:])
    assert "cut off in member 'b.jpg'" in open_index(path).flaw


def test_a_member_that_is_a_hole_of_terabytes_is_not_read(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "s.tar", [("a.jpg", b"x"), ("b.jpg", b"y")])
    header = path.read_bytes()[1024:1536]
    with open(path, "r+b") as file:
        file.seek(1024)
        file.write(_with_size(header, 8 << 40))
        try:
            file.truncate(1536 + (8 << 40) + 1024)  # takes no room on disk
        except OSError:
            pytest.skip("no files of 8 TB on this disk")
    source = _source(path)
    assert source.raw("s/a.jpg") == b"x"
    with pytest.raises(DecodeError, match=r"8796\.1 GB are too much for an image"):
        source.raw("s/b.jpg")


def _with_size(header: bytes, size: int) -> bytes:
    """A header that tells another size, in binary, and is otherwise right."""
    data = bytearray(header)
    data[124:136] = b"\x80" + size.to_bytes(11)
    data[148:156] = b"        "
    data[148:156] = b"%06o\0 " % sum(data)
    return bytes(data)

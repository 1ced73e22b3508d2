"""An image is known by its bytes; they are read again only when its file is another one than it was."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from manylabel.cache_folder import cache_folder
from manylabel.data import contents as contents_module
from manylabel.data import file_stamp as stamp_module
from manylabel.data.contents import contents
from manylabel.data.file_stamp import file_stamp
from manylabel.data.source import FileSource, SceneSource
from manylabel.error import DecodeError
from manylabel.stop import Stopped, StopRequest

KEYS = [f"{i}.jpg" for i in range(5)]


@dataclass(frozen=True)
class Counting(FileSource):
    """Notes what is read."""

    seen: list[str] = field(default_factory=list)

    def content(self, key: str) -> tuple[bytes, int]:
        self.seen.append(key)
        return super().content(key)


@pytest.fixture
def source(tmp_path: Path) -> Counting:
    (tmp_path / "images").mkdir()
    for i, key in enumerate(KEYS):
        (tmp_path / "images" / key).write_bytes(b"photo %d" % i)
    return Counting(tmp_path / "images")


def kept() -> Path:
    (path,) = (cache_folder() / "contents").iterdir()
    return path


@pytest.mark.usefixtures("settled")
def test_an_image_is_read_once(source: Counting) -> None:
    first = contents(source, KEYS)
    assert len(set(first)) == 5
    assert contents(source, KEYS) == first
    assert contents(source, KEYS[::-1]) == first[::-1]
    assert source.seen == KEYS


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("how", ["write", "replace", "touch", "link", "chmod"])
def test_a_file_that_may_be_another_one_is_read_again(source: Counting, how: str, tmp_path: Path) -> None:
    path = source.root / "2.jpg"
    first, facts = contents(source, KEYS), path.stat()
    other = tmp_path / "other.jpg"
    other.write_bytes(b"photo 9")
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    if how == "write":
        path.write_bytes(b"photo 9")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    elif how == "replace":
        os.replace(other, path)
    elif how == "touch":
        os.utime(path, (1, 1))
    elif how == "link":
        path.unlink()
        path.symlink_to(other)
    else:
        path.chmod(0o600)
    again = contents(source, KEYS)
    assert source.seen == [*KEYS, "2.jpg"]
    same = how in ("touch", "chmod")
    assert [a == b for a, b in zip(first, again, strict=True)] == [True, True, same, True, True]


def test_a_file_of_this_moment_is_not_remembered(source: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may change again within the same tick of the clock, and nothing but its bytes would tell."""
    path = source.root / "0.jpg"
    monkeypatch.setattr(stamp_module, "YOUNG", 600.0)
    assert file_stamp(path) != file_stamp(path)
    contents(source, KEYS)
    contents(source, KEYS)
    assert source.seen == KEYS * 2
    monkeypatch.setattr(stamp_module, "YOUNG", 0.05)
    time.sleep(0.1)
    assert file_stamp(path) == file_stamp(path)


@pytest.mark.usefixtures("settled")
def test_a_copy_elsewhere_has_the_same_contents(source: Counting, tmp_path: Path) -> None:
    shutil.copytree(source.root, tmp_path / "copy")
    assert contents(FileSource(tmp_path / "copy"), KEYS) == contents(source, KEYS)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("settled")
def test_what_cannot_be_read_is_another_image_than_any(source: Counting) -> None:
    os.mkfifo(source.root / "pipe.jpg")
    (source.root / "folder.jpg").mkdir()
    odd = ["pipe.jpg", "folder.jpg", "missing.jpg"]
    found = contents(source, [*KEYS, *odd])
    assert len(set(found)) == 8
    (source.root / "missing.jpg").write_bytes(b"here now")
    again = contents(source, [*KEYS, *odd])
    assert again[:7] == found[:7]
    assert again[7] != found[7]


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "garbage", "folder", "link", "gone"])
def test_what_was_remembered_is_not_believed(source: Counting, damage: str, tmp_path: Path) -> None:
    first = contents(source, KEYS)
    path, data = kept(), bytearray(kept().read_bytes())
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "link":
        (tmp_path / "theirs").write_bytes(data)
        path.symlink_to(tmp_path / "theirs")
    elif damage != "gone":
        data[-3] ^= 1
        path.write_bytes({"empty": b"", "cut": data[:-40], "flipped": data, "garbage": b"x" * 999}[damage])
    assert contents(source, KEYS) == first
    assert source.seen == KEYS * 2
    assert contents(source, KEYS) == first
    assert source.seen == KEYS * 2
    assert not path.is_symlink()


@pytest.mark.usefixtures("settled")
def test_a_stop_keeps_what_was_read(source: Counting) -> None:
    stop = StopRequest()

    def advance(_: int) -> None:
        stop.signal = 2 if len(source.seen) == 3 else None

    with pytest.raises(Stopped):
        contents(source, KEYS, stop, advance)
    contents(source, KEYS)
    assert source.seen == KEYS


@pytest.mark.usefixtures("settled")
def test_of_too_many_those_go_that_were_not_asked_for_longest(
    source: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_module, "KEPT", 3)
    for key in KEYS:
        contents(source, [key])
    contents(source, KEYS[2:])
    assert source.seen == KEYS
    contents(source, KEYS[:1])
    assert source.seen == [*KEYS, KEYS[0]]


def test_no_cache_folder_is_no_error(source: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MANYLABEL_CACHE", str(tmp_path / "file"))
    assert len(set(contents(source, KEYS))) == 5


def test_scenes_are_known_by_how_they_are_drawn() -> None:
    keys = [SceneSource.key(i) for i in range(3)]
    one, other = (contents(SceneSource(seed, 64), keys) for seed in (0, 1))
    assert len({*one, *other}) == 6


def test_a_sparse_file_of_a_terabyte_is_not_read(source: Counting) -> None:
    os.truncate(source.path(KEYS[0]), 10**12)
    started = time.process_time()
    contents(source, KEYS)
    for look in (source.read, source.describe):
        with pytest.raises(DecodeError, match=r"a file of 1000\.0 GB, over the limit of 1\.1 GB"):
            look(KEYS[0])
    assert time.process_time() - started < 1

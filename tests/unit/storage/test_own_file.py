"""Files of our own are opened only where they are files, and made anew where something else lies."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from manylabel.storage.own_file import (
    is_plain_file,
    make_way,
    new_own,
    open_own,
    own_folder,
    read_own,
    read_own_json,
)

pytestmark = pytest.mark.timeout(30)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


PLANTED: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "socket": _socket,
    "link": lambda path: path.symlink_to("theirs"),
    "dangling": lambda path: path.symlink_to("nowhere"),
}


@pytest.fixture(params=PLANTED)
def planted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    Path("theirs").write_text('{"mine": 1}')
    PLANTED[request.param](Path("ours"))
    return Path("ours")


def test_only_a_file_is_opened_and_never_through_a_link(planted: Path) -> None:
    assert not is_plain_file(planted)
    for writable in (False, True):
        with pytest.raises(OSError):
            open_own(planted, writable=writable, create=writable)
    with pytest.raises(OSError):
        read_own_json(planted)
    assert not Path("nowhere").exists()


def test_what_is_no_file_makes_way(planted: Path) -> None:
    with new_own(planted) as file:
        file.write(b"new")
    assert read_own(planted) == b"new"
    assert Path("theirs").read_text() == '{"mine": 1}'
    assert not Path("nowhere").exists()


def test_a_folder_with_something_in_it_is_moved_aside(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "ours").mkdir()
        (tmp_path / "ours" / "kept").write_text(str(number))
        make_way(tmp_path / "ours")
        assert not (tmp_path / "ours").exists()
        assert (tmp_path / f"ours.aside-{number}" / "kept").read_text() == str(number)


def test_who_reads_the_old_file_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(b"old")
    with open_own(tmp_path / "ours") as old:
        new_own(tmp_path / "ours").close()
        assert old.read() == b"old"
    assert read_own(tmp_path / "ours") == b""


def test_a_file_larger_than_any_of_ours_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(bytes(100))
    with pytest.raises(OSError, match="too large"):
        read_own(tmp_path / "ours", most=99)
    assert len(read_own(tmp_path / "ours", most=100)) == 100


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 200_000, '{"a":' * 200_000, "\xff"])
def test_what_is_no_json_object_is_a_value_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "ours").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError):
        read_own_json(tmp_path / "ours")


def test_a_folder_of_ours_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "file").write_text("x")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "kept").write_text("x")
    for name in ("link", "file", "real", "above/new"):
        own_folder(tmp_path / name)
        assert (tmp_path / name).is_dir()
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "theirs").is_dir()
    assert (tmp_path / "real" / "kept").exists()

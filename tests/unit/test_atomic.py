from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from types import FrameType

import pytest

from manylabel.error import ManylabelError
from manylabel.storage import atomic
from manylabel.storage.atomic import UMASK, replacing, sweep, write_json, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    before = path.read_bytes()
    with pytest.raises(ManylabelError, match="a is not a finite number"):
        write_json(path, {"a": float("nan")})

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_an_interrupt_at_any_line_leaves_nothing_half_written(tmp_path: Path) -> None:
    for number in itertools.count(1):
        tracer = _Interrupt(number)
        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            write_text(tmp_path / "x", str(number))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert [path.name for path in tmp_path.iterdir()] in ([], ["x"]), tracer.where
        if not tracer.where:
            break
    assert number > 20
    assert (tmp_path / "x").read_text() == str(number)


class _Interrupt:
    """A Ctrl-C before this line of those that write a file."""

    def __init__(self, number: int) -> None:
        self.left, self.where = number, ""

    def __call__(self, frame: FrameType, event: str, _: object) -> _Interrupt | None:
        if frame.f_code.co_filename != atomic.__file__:
            return None
        self.left -= event == "line"
        if not self.left and not self.where:
            self.where = f"{frame.f_code.co_name}:{frame.f_lineno}"
            raise KeyboardInterrupt
        return self


def test_sweep_removes_only_what_was_left_half_written(tmp_path: Path) -> None:
    write_text(tmp_path / "keep.txt", "ok")
    (tmp_path / "keep.txt.123.partial").write_text("half")
    assert [p.name for p in sweep(tmp_path)] == ["keep.txt.123.partial"]
    assert [p.name for p in tmp_path.iterdir()] == ["keep.txt"]


def test_files_can_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    with replacing(tmp_path / "x") as temporary:
        temporary.write_text("x")
        temporary.chmod(0o600)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o666 & ~UMASK


def test_json_is_readable_text(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"label": "größe"})
    assert "größe" in (tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"label": "größe"}

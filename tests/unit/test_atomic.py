from __future__ import annotations

import json
from pathlib import Path

import pytest

from manylabel.atomic import UMASK, replacing, sweep, write_json, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    before = path.read_bytes()
    with pytest.raises(ValueError):
        write_json(path, {"a": float("nan")})

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


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

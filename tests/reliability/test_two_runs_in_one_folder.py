"""A run has its folder to itself, and whoever comes second is told who is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from command import TINY, manylabel, settings

from manylabel.data.read import load_data
from manylabel.error import ConfigError
from manylabel.storage import lock
from manylabel.storage.lock import LOCK, OWNER, only_one

HOLDER = """
import sys, time
from pathlib import Path
from manylabel.storage.lock import only_one
with only_one(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path):  # type: ignore[no-untyped-def]
    process = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "run"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("more", [(), ("--overwrite",), ("--resume",)])
def test_a_second_run_in_the_folder_is_refused_and_the_first_is_named(
    holder: subprocess.Popen[str], photos: Path, tmp_path: Path, trained: Path, more: tuple[str, ...]
) -> None:
    run = tmp_path / "run"
    if more == ("--resume",):
        for name in ("config.yaml", "run.json"):
            (run / name).write_bytes((trained / name).read_bytes())
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    data = () if more == ("--resume",) else (photos,)
    answer = manylabel("train", *data, "--out", run, *(settings(*TINY) if data else ()), *more)
    assert answer.returncode == 2
    assert f"in use by process {holder.pid} on " in answer.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_the_first_is_named_although_it_has_begun_a_run_there(
    holder: subprocess.Popen[str], photos: Path, tmp_path: Path, trained: Path
) -> None:
    (tmp_path / "run" / "run.json").write_bytes((trained / "run.json").read_bytes())
    answer = manylabel("train", photos, "--out", tmp_path / "run", *settings(*TINY))
    assert answer.returncode == 2
    assert f"in use by process {holder.pid} on " in answer.stderr
    holder.kill()
    holder.wait()
    answer = manylabel("train", photos, "--out", tmp_path / "run", *settings(*TINY))
    assert answer.returncode == 2
    assert "already holds a run; --resume goes on with it" in answer.stderr


def test_several_tasks_are_refused_too(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    answer = manylabel("train", "--recipe", "adamv-moe-scenes", "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert f"in use by process {holder.pid} on " in answer.stderr


def test_a_killed_process_leaves_the_folder_free(
    holder: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: where it had no workers there is nobody to wait for."""
    monkeypatch.setattr(lock, "SECONDS", 0)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run" / OWNER).is_file()
    with only_one(tmp_path / "run"):
        assert str(os.getpid()) in (tmp_path / "run" / OWNER).read_text()
    assert not (tmp_path / "run" / OWNER).exists()


def test_nothing_is_left_where_nothing_came_of_it(tmp_path: Path) -> None:
    with only_one(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / LOCK).is_file()
    assert not (tmp_path / "a").exists()
    (tmp_path / "mine").mkdir()
    with only_one(tmp_path / "mine"):
        pass
    assert not list((tmp_path / "mine").iterdir())
    with only_one(tmp_path / "a"):
        (tmp_path / "a" / "results.json").write_text("{}")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [LOCK, "results.json"]


@pytest.mark.parametrize("name", [LOCK, OWNER, "lock", "lock.json"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling", "fifo", "folder"])
def test_what_others_keep_under_the_name_of_a_lock_stays(tmp_path: Path, name: str, kind: str) -> None:
    """It is refused where it is in our way; the names that earlier versions used are anybody's."""
    (tmp_path / "theirs").write_text('{"mine": 1}')
    plant = {
        "file": lambda path: path.write_text('{"mine": 1}'),
        "link": lambda path: path.symlink_to("theirs"),
        "dangling": lambda path: path.symlink_to("nowhere"),
        "fifo": os.mkfifo,
        "folder": Path.mkdir,
    }[kind]
    plant(tmp_path / name)
    before = {path.name: path.lstat().st_ino for path in tmp_path.iterdir()}
    refused = pytest.raises(ConfigError, match=f"{name} is not a lock of manylabel's; remove it")
    with nullcontext() if name.startswith("lock") else refused, only_one(tmp_path):
        pass
    assert {path.name: path.lstat().st_ino for path in tmp_path.iterdir() if path.name in before} == before
    assert not (tmp_path / "nowhere").exists()
    assert (tmp_path / "theirs").read_text() == '{"mine": 1}'
    if kind == "file":
        assert (tmp_path / name).read_text() == '{"mine": 1}'


def test_a_folder_is_not_passed_over_as_data_for_a_lock_of_others(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    photos.rename(tmp_path / "archive" / "photos")
    (tmp_path / "archive" / "photos" / "lock.json").write_text('{"poetry": "mine"}')
    assert len(load_data(tmp_path / "archive"))


def test_the_one_who_is_there_may_be_unknown(tmp_path: Path) -> None:
    with only_one(tmp_path):
        (tmp_path / OWNER).write_text("nonsense")
        with pytest.raises(ConfigError, match="in use by another process"), only_one(tmp_path):
            pass

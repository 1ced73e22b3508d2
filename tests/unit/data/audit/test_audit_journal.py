"""A check that was interrupted goes on, one that is repeated is quick, and a changed or damaged thing is looked at again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from audit_photos import photo, table_of, write
from PIL import Image

from manylabel import console
from manylabel.cache_folder import cache_folder
from manylabel.data.audit import inspect_table
from manylabel.data.audit.inspection import CHUNK
from manylabel.data.audit.journal import RECORD
from manylabel.data.source import FileSource
from manylabel.data.table import Table

COUNT = 3 * CHUNK + 8

pytestmark = pytest.mark.usefixtures("settled")


@dataclass(frozen=True)
class CountingSource(FileSource):
    """Notes what is read, and can be told to be interrupted before a certain image."""

    read_keys: list[str] = field(default_factory=list)
    stop_at: list[str] = field(default_factory=list)

    def raw(self, key: str) -> bytes:
        if key in self.stop_at:
            raise KeyboardInterrupt
        self.read_keys.append(key)
        return super().raw(key)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("many"), {f"{i:03d}.png": photo(i, (48, 40)) for i in range(COUNT)})


@pytest.fixture
def folder(pictures: Path, tmp_path: Path) -> Path:
    """The same files in a folder of the test's own."""
    here = tmp_path / "many"
    here.mkdir()
    for path in pictures.iterdir():
        os.link(path, here / path.name)
    return here


def counting(folder: Path) -> tuple[Table, CountingSource]:
    table = table_of(folder, {path.name: ["x"] for path in sorted(folder.iterdir())})
    source = CountingSource(folder)
    return replace(table, source=source), source


def journals() -> list[Path]:
    return sorted((cache_folder() / "check").glob("*/*.facts"))


def test_a_second_check_reads_nothing_and_says_the_same(folder: Path) -> None:
    table, source = counting(folder)
    steps: list[int] = []
    first = inspect_table(table, 1, steps.append)
    assert len(source.read_keys) == COUNT == sum(steps)
    source.read_keys.clear()
    steps.clear()
    again = inspect_table(table, 1, steps.append)
    assert source.read_keys == []
    assert sum(steps) == COUNT
    np.testing.assert_array_equal(first.facts, again.facts)
    assert [path.name for path in journals()] == ["whole.facts"]


def test_two_processes_find_what_one_finds(folder: Path) -> None:
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    table, _ = counting(folder)
    alone = inspect_table(table, 1, journal=False)
    together = inspect_table(table, 2, journal=False)
    np.testing.assert_array_equal(alone.facts, together.facts)
    assert alone.unreadable == together.unreadable
    assert list(alone.unreadable) == [COUNT]
    assert journals() == []


def test_an_interrupted_check_goes_on(folder: Path) -> None:
    table, source = counting(folder)
    source.stop_at.append(f"{2 * CHUNK + 5:03d}.png")
    with pytest.raises(KeyboardInterrupt):
        inspect_table(table, 1)
    assert len(journals()) == 1
    source.stop_at.clear()
    source.read_keys.clear()
    whole = inspect_table(table, 1)
    assert source.read_keys == [f"{i:03d}.png" for i in range(2 * CHUNK, COUNT)]  # two chunks were kept
    assert whole.readable.all()
    np.testing.assert_array_equal(whole.facts, inspect_table(table, 1, journal=False).facts)
    assert [path.name for path in journals()] == ["whole.facts"]


def test_only_changed_and_unreadable_images_are_read_again(folder: Path) -> None:
    (folder / "broken.png").write_bytes(b"")
    table, source = counting(folder)
    before = inspect_table(table, 1)
    assert before.unreadable == {COUNT: "empty file (0 bytes)"}
    photo(7000, (52, 44)).save(folder / "new.png")
    os.replace(folder / "new.png", folder / "005.png")
    source.read_keys.clear()
    after = inspect_table(table, 1)
    assert sorted(source.read_keys) == ["005.png", "broken.png"]  # mended without a new time stamp, perhaps
    assert (after.facts["width"][5], after.facts["height"][5]) == (52, 44)
    assert len(np.fromfile(journals()[0], RECORD)) == COUNT  # the old record of the changed image is gone


def test_images_that_come_later_are_added_and_others_are_kept(folder: Path) -> None:
    table, source = counting(folder)
    inspect_table(table.subset(np.arange(10)), 1)
    source.read_keys.clear()
    inspect_table(table.subset(np.arange(5, 20)), 1)
    assert source.read_keys == [f"{i:03d}.png" for i in range(10, 20)]
    source.read_keys.clear()
    inspect_table(table.subset(np.arange(10)), 1)
    assert source.read_keys == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage", "empty"])
def test_a_damaged_journal_costs_time_and_nothing_else(folder: Path, damage: str) -> None:
    table, source = counting(folder)
    first = inspect_table(table, 1)
    path = journals()[0]
    data = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(data[: -RECORD.itemsize // 2])
    elif damage == "flipped":
        data[3 * RECORD.itemsize + 40] ^= 16
        path.write_bytes(data)
    else:
        path.write_bytes(b"nonsense" * 999 if damage == "garbage" else b"")
    source.read_keys.clear()
    again = inspect_table(table, 1)
    assert len(source.read_keys) == (1 if damage in ("cut", "flipped") else COUNT)
    np.testing.assert_array_equal(first.facts, again.facts)


@pytest.mark.timeout(60)
def test_what_is_no_file_among_the_journals_is_passed_over(folder: Path, tmp_path: Path) -> None:
    table, _ = counting(folder)
    first = inspect_table(table, 1)
    whole = journals()[0]
    (tmp_path / "theirs").write_bytes(whole.read_bytes())
    whole.unlink()
    os.mkfifo(whole.with_name("pipe.facts"))
    whole.with_name("folder.facts").mkdir()
    whole.symlink_to(tmp_path / "theirs")
    again = inspect_table(table, 1)
    np.testing.assert_array_equal(first.facts["content"], again.facts["content"])
    assert whole.is_file()
    assert not whole.is_symlink()
    assert len(np.fromfile(whole, RECORD)) == COUNT


def test_an_image_that_was_replaced_by_one_of_equal_size_and_time_is_looked_at_again(folder: Path) -> None:
    table, source = counting(folder)
    inspect_table(table, 1)
    path = folder / "005.png"
    facts, data = path.stat(), bytearray(path.read_bytes())
    data[-20] ^= 255
    path.unlink()  # it is a hard link to a file of all tests
    path.write_bytes(data)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    source.read_keys.clear()
    inspect_table(table, 1)
    assert source.read_keys == ["005.png"]


def test_two_checks_at_once_do_not_disturb_each_other(folder: Path) -> None:
    table, source = counting(folder)
    half, nested = COUNT // 2, []

    def advance(_: int) -> None:
        if not nested:  # in the middle of the first check a second one runs from start to end
            nested.append(inspect_table(table.subset(np.arange(half, COUNT)), 1))

    outer = inspect_table(table, 1, advance)
    assert outer.readable.all()
    np.testing.assert_array_equal(outer.facts[half:], nested[0].facts)
    source.read_keys.clear()
    np.testing.assert_array_equal(inspect_table(table, 1).facts, outer.facts)
    assert source.read_keys == []


def test_no_room_for_the_journal_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MANYLABEL_CACHE", str(tmp_path / "file"))
    said: list[str] = []
    monkeypatch.setattr(console, "warn", said.append)
    table, source = counting(folder)
    inspect_table(table, 1)
    assert sorted(source.read_keys) == sorted(table.keys)
    assert len(said) == 1
    assert "is not remembered" in said[0]
    assert "MANYLABEL_CACHE" in said[0]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    Image.new("RGB", (40, 40)).save(tmp_path / "good.jpg")
    table = table_of(tmp_path, {key: ["x"] for key in ("pipe.jpg", "folder.jpg", "missing.jpg", "good.jpg")})
    found = inspect_table(table, 1)
    assert found.unreadable == {0: "not a regular file", 1: "is a folder", 2: "file not found"}


def test_a_killed_check_leaves_no_process_behind_and_goes_on(folder: Path) -> None:
    """The main process is killed without a chance to say anything to its workers."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc to see which processes run")
    script = (
        "import sys, time; from pathlib import Path; from audit_photos import table_of\n"
        "from manylabel.data.audit import inspect_table\n"
        "import multiprocessing; from manylabel.data import file_stamp; file_stamp.YOUNG = -1\n"
        "folder = Path(sys.argv[1]); table = table_of(folder, {p.name: ['x'] for p in sorted(folder.iterdir())})\n"
        "def advance(count):\n"
        "    print(*(p.pid for p in multiprocessing.active_children()), flush=True)\n"
        "    time.sleep(60)\n"
        "inspect_table(table, 2, advance)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
    assert workers
    for _ in range(1200):
        if not any(_runs(pid) for pid in workers):
            break
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in workers)
    assert len(np.fromfile(journals()[0], RECORD)) == CHUNK  # the first chunk was written down
    steps: list[int] = []
    table = replace(counting(folder)[0], source=FileSource(folder))
    assert inspect_table(table, 1, steps.append).readable.all()
    assert steps.count(1) == CHUNK  # recalled one by one; the others were read by the chunk


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False

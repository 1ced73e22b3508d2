"""CK1–CK3: checkpoints survive kills, full disks and damage."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
import torch
import warm
from warm import Warm

from manylabel.error import CheckpointError
from manylabel.training import checkpoint as checkpoint_module
from manylabel.training.checkpoint import Checkpoint, CheckpointFolder
from manylabel.training.history import History, read_history
from manylabel.training.snapshot import newest

SAVE_LOOP = """
import sys, torch
from pathlib import Path
from manylabel.training.checkpoint import Checkpoint, CheckpointFolder
folder = CheckpointFolder(Path(sys.argv[1]))
start = int(sys.argv[2])
print("ready", flush=True)
for step in range(start, start + 100000):
    folder.save(step, Checkpoint({"w": torch.full((200_000,), float(step))}, {"step": step}))
"""


@pytest.mark.slow
def test_ck1_thirty_kills_in_a_save_loop(tmp_path: Path) -> None:
    rng = random.Random(0)
    last = -1
    for _ in range(30):
        said = tmp_path.with_suffix(".out")
        said.write_text("")
        process = Warm("-c", SAVE_LOOP, tmp_path, str(last + 1), out=said)
        while not said.read_text():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.02 + 0.15 * rng.random())
        process.send_signal(signal.SIGKILL)
        process.wait()
        folder = CheckpointFolder(tmp_path)  # sweeps
        loaded, _ = folder.load_latest()
        assert not list(tmp_path.glob("*.partial"))
        if loaded is None:
            assert last == -1  # killed before the first save was whole
            continue
        step = loaded.values["step"]
        assert step >= last
        assert torch.equal(loaded.tensors["w"], torch.full((200_000,), float(step)))
        last = step
    assert last > 0


def _folder_with_two(path: Path) -> CheckpointFolder:
    folder = CheckpointFolder(path)
    for step in (1, 2):
        folder.save(step, Checkpoint({"w": torch.full((100,), float(step))}, {"step": step}))
    return folder


def test_ck2_a_serialiser_that_fails_half_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder_with_two(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def half(_tensors: object, path: Path, **_options: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_module, "save_file", half)
    with pytest.raises(CheckpointError, match="No space left on device.*previous checkpoint is untouched"):
        folder.save(3, Checkpoint({"w": torch.zeros(100)}, {}))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


FULL_DISK = """
import resource, sys, torch
from pathlib import Path
from manylabel.error import CheckpointError
from manylabel.training.checkpoint import Checkpoint, CheckpointFolder
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = CheckpointFolder(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    folder.save(3, Checkpoint({"w": torch.zeros(100_000)}, {}))
except CheckpointError as error:
    print(error)
"""


def test_ck2_the_system_refuses_to_write_more(tmp_path: Path) -> None:
    _folder_with_two(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    answer = warm.run("-c", FULL_DISK, tmp_path)
    assert "previous checkpoint is untouched" in answer.stdout, answer.stderr
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_damaged_best_checkpoint_is_not_used(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save_best(Checkpoint({"w": torch.ones(100)}, {"epoch": 3}))
    assert folder.load_best().values == {"epoch": 3}
    data = bytearray((tmp_path / "best.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "best.safetensors").write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match="another checksum"):
        folder.load_best()


def test_a_history_cut_off_by_a_kill_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1, "step": 5}\n{"epo')
    history = History(path)
    history.forget_after(5)
    history.add({"epoch": 2, "step": 10})
    assert [row["epoch"] for row in read_history(path)] == [1, 2]


@pytest.mark.parametrize("damage", ["no manifest", "wrong checksum", "broken manifest", "gone", 0.1, 0.5, 0.99])
def test_ck3_damage_falls_back_and_says_so(tmp_path: Path, damage: str | float) -> None:
    folder = _folder_with_two(tmp_path)
    newest = tmp_path / "step-000000002.safetensors"
    manifest = newest.with_suffix(".json")
    if damage == "no manifest":
        manifest.unlink()
    elif damage == "wrong checksum":
        data = bytearray(newest.read_bytes())
        data[-1] ^= 1
        newest.write_bytes(bytes(data))
    elif damage == "broken manifest":
        manifest.write_text("{")
    elif damage == "gone":
        newest.unlink()
    else:
        data = newest.read_bytes()
        newest.write_bytes(data[: int(len(data) * float(damage))])
    loaded, problems = folder.load_latest()
    assert loaded is not None
    assert loaded.values["step"] == 1
    assert problems
    assert "step-000000002" in problems[0]


def test_a_run_that_was_killed_in_its_first_checkpoint_begins_anew(tmp_path: Path) -> None:
    folder = _folder_with_two(tmp_path)
    for step in (1, 2):
        (tmp_path / f"step-00000000{step}.json").unlink()
    said: list[str] = []
    assert newest(folder, said.append) is None
    assert said[-1] == "there is no checkpoint yet: starting from the beginning"
    assert "has no manifest: it was not finished" in said[0]
    (tmp_path / "step-000000002.json").write_text("{")
    with pytest.raises(CheckpointError, match="no checkpoint in .* is whole"):
        newest(folder, said.append)


def test_a_folder_in_the_place_of_a_checkpoint_makes_way(tmp_path: Path) -> None:
    folder = _folder_with_two(tmp_path)
    for name in ("step-000000002.safetensors", "step-000000003.json"):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).mkdir()
    (tmp_path / "step-000000003.json" / "mine.txt").write_text("mine")
    loaded, _ = folder.load_latest()
    assert loaded is not None
    assert loaded.values["step"] == 1
    for step in (2, 3):
        folder.save(step, Checkpoint({}, {"step": step}))
        loaded, problems = folder.load_latest()
        assert loaded is not None
        assert loaded.values["step"] == step
    assert not problems
    assert (tmp_path / "step-000000003.json.aside-1" / "mine.txt").read_text() == "mine"


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=2)
    for step in range(5):
        folder.save(step, Checkpoint({"w": torch.zeros(2)}, {"step": step}))
    assert sorted(p.name for p in tmp_path.glob("*.safetensors")) == [
        "step-000000003.safetensors",
        "step-000000004.safetensors",
    ]

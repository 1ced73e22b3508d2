"""CK4–CK6: a run that was stopped or killed ends with the very bits of one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import warm
from warm import Warm

from manylabel import run
from manylabel.error import CheckpointError, ConfigError, DataError, ManylabelError
from manylabel.stop import Stopped
from manylabel.storage.atomic import sha256
from manylabel.training.loop import Trainer

AUGMENTED = ["augment.flip=true", "augment.mixup=0.4", "train.cache=off", "head.dropout=0.2", "train.ema=0.99"]
LOOP = ["train.epochs=2", "train.batch_size=8", "data.validation_share=0.17"]  # 48 photos: 2 epochs × 5 batches
LONG = ["backbone.freeze=full", "train.epochs=500", "data.workers=2", "train.cache=off"]
Process = subprocess.Popen[bytes]
PATIENCE = 240  # seconds, however busy the machine is


def _train(photos: Path, out: Path, settings: list[str], resume: bool = False) -> None:
    run.train(str(photos), out=out, settings=settings, resume=resume)


def _weights(out: Path) -> tuple[str, str]:
    return sha256(out / "bundle" / "weights.safetensors"), (out / "results.json").read_text().split('"data"')[1]


def _stop_after(monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    """Ask for a stop as a signal would, after so many batches."""
    seen = 0
    learn = Trainer._pass

    def counting(self: Trainer, *given: Any) -> float:
        nonlocal seen
        seen += 1
        if seen == batches:
            self.stop.signal = signal.SIGTERM
        return learn(self, *given)

    monkeypatch.setattr(Trainer, "_pass", counting)


def check_stopped_and_resumed(
    photos: Path, folder: Path, settings: list[str], monkeypatch: pytest.MonkeyPatch, stops: tuple[int, ...]
) -> None:
    """A run that is stopped after each of so many batches, and resumed, ends like one that was not."""
    _train(photos, folder / "whole", settings)
    done = 0
    for stop in stops:
        with monkeypatch.context() as patch:
            _stop_after(patch, stop - done)
            with pytest.raises(Stopped, match="--resume"):
                _train(photos, folder / "cut", settings, resume=done > 0)
        done = stop
    _train(photos, folder / "cut", settings, resume=True)
    assert _weights(folder / "cut") == _weights(folder / "whole")


@pytest.mark.parametrize("workers", [0, 2])
def test_ck4_stopped_runs_end_bit_for_bit_the_same(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """In the middle of an epoch, at its end, after the first batch of the next one, at the very end."""
    settings = [*tiny_settings, *LOOP, *AUGMENTED, "backbone.freeze=full", f"data.workers={workers}"]
    check_stopped_and_resumed(photos, tmp_path, settings, monkeypatch, (4, 5, 6, 10))
    lines = (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == 2  # one per epoch, none twice


@pytest.mark.parametrize("extra", [["train.accumulate=2"], ["optimiser.name=sgd", "schedule.name=cosine"]])
def test_ck4_accumulation_and_other_optimisers(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch, extra: list[str]
) -> None:
    settings = [*tiny_settings, *LOOP, *extra, "train.clip=1.0", "backbone.freeze=partial", "data.workers=0"]
    _train(photos, tmp_path / "whole", settings)
    with monkeypatch.context() as patch:
        _stop_after(patch, 3)
        with pytest.raises(Stopped):
            _train(photos, tmp_path / "cut", settings)
    _train(photos, tmp_path / "cut", settings, resume=True)
    assert _weights(tmp_path / "cut") == _weights(tmp_path / "whole")


def _command(photos: Path, out: Path, settings: list[str], resume: bool) -> list[str]:
    arguments = ["-m", "manylabel", "train"]
    arguments += ["--resume", "--out", str(out)] if resume else [str(photos), "--out", str(out)]
    if not resume:
        for setting in settings:
            arguments += ["--set", setting]
    return arguments


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ck5_sigkill_in_mid_epoch_again_and_again(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    """Ten kills, each after the run has gone a little further, with a checkpoint after every batch."""
    settings = [*tiny_settings, *AUGMENTED, "backbone.freeze=full", "train.epochs=6", "train.batch_size=4"]
    settings += ["train.checkpoint_minutes=0", "data.workers=0", "data.validation_share=0.17"]
    whole, cut, log = tmp_path / "whole", tmp_path / "cut", tmp_path / "log.txt"
    assert warm.run(*_command(photos, whole, settings, False)).returncode == 0
    for kill in range(10):
        goal = _newest(cut) + 3
        with _running(_command(photos, cut, settings, resume=kill > 0), log) as process:
            _wait_until(lambda goal=goal: _newest(cut) >= goal, process, log)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
    assert warm.run(*_command(photos, cut, settings, True)).returncode == 0
    assert _weights(cut) == _weights(whole)


@contextmanager
def _ended(process: Any) -> Iterator[Any]:
    """In the end, with its whole group."""
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[Warm]:
    """As a group of processes that does not outlive the test; what it complains of goes into `log`."""
    log.write_text("")
    with _ended(Warm(*command, err=log)) as process:
        yield process


def _wait_until(reached: Callable[[], bool], process: Process | Warm, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not reached():
        assert process.poll() is None, f"it ended with {process.returncode}: {log.read_text()}"
        assert time.monotonic() < until, f"it did not get that far: {log.read_text()}"
        time.sleep(0.01)


def _newest(out: Path) -> int:
    return max((int(p.stem.split("-")[1]) for p in (out / "checkpoints").glob("step-*.json")), default=0)


@contextmanager
def _running_for_real(command: list[str], log: Path) -> Iterator[Process]:
    """As a user's: how long such a one takes to end is what is measured."""
    with open(log, "wb") as complaints:
        words = [sys.executable, *command]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=complaints, start_new_session=True)
    with _ended(process):
        yield process


def _seconds_to_end(
    photos: Path, folder: Path, settings: list[str], signal_it: Callable[[Process], None], code: int
) -> float:
    """How long a run in its second epoch takes to save everything and to end, once it gets that signal."""
    out, log = folder / "run", folder / "log.txt"
    folder.mkdir()
    with _running_for_real(_command(photos, out, [*settings, *LONG], False), log) as process:
        _wait_until((out / "metrics.jsonl").exists, process, log)
        asked = time.monotonic()
        signal_it(process)
        assert process.wait(timeout=PATIENCE) == code, log.read_text()
        seconds = time.monotonic() - asked
    assert "everything is saved" in log.read_text()
    assert list((out / "checkpoints").glob("step-*.safetensors"))
    return seconds


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ck6_a_signal_saves_and_ends(photos: Path, tmp_path: Path, tiny_settings: list[str], number: int) -> None:
    """Within ten seconds, unless the machine is busy with other things all three times."""
    assert any(
        _seconds_to_end(
            photos, tmp_path / str(attempt), tiny_settings, lambda process: process.send_signal(number), 128 + number
        )
        < 10
        for attempt in range(3)
    )


@pytest.mark.parametrize("attempt", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
def test_ck6_a_signal_to_the_whole_group_saves_too(
    photos: Path, tmp_path: Path, tiny_settings: list[str], attempt: int
) -> None:
    """As systemd or `timeout` send it: the worker processes end at the same moment."""

    def signal_all(process: Process) -> None:
        time.sleep(0.1 * attempt)
        os.killpg(process.pid, signal.SIGTERM)

    _seconds_to_end(photos, tmp_path / "signalled", tiny_settings, signal_all, 128 + signal.SIGTERM)


def test_resume_refuses_other_data(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    settings = [*tiny_settings, *LOOP, "data.workers=0"]
    _train(photos, tmp_path / "run", settings)
    table = photos / "labels.csv"
    before = table.read_text()
    changed = before.splitlines()
    changed[5] = changed[5].split(",")[0] + "," + ("" if changed[5].split(",")[1] else "red")
    table.write_text("\n".join(changed) + "\n")
    with pytest.raises(CheckpointError, match="have changed since this run began"):
        _train(photos, tmp_path / "run", settings, resume=True)
    (photos / "images" / "new.jpg").write_bytes((photos / "images" / "photo000.jpg").read_bytes())
    table.write_text(before + "new.jpg,red\n")
    with pytest.raises(DataError, match="1 images were added since this run began"):
        _train(photos, tmp_path / "run", settings, resume=True)


def test_a_failed_overwrite_loses_nothing(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    settings = [*tiny_settings, *LOOP, "data.workers=0"]
    _train(photos, tmp_path / "run", settings)
    before = {p.name: sha256(p) for p in (tmp_path / "run").rglob("*") if p.is_file()}
    for data, extra in ((tmp_path / "phot0s", []), (photos, ["backbone.name=efficentnet"])):
        with pytest.raises(ManylabelError):
            run.train(str(data), out=tmp_path / "run", settings=[*settings, *extra], overwrite=True)
        assert {p.name: sha256(p) for p in (tmp_path / "run").rglob("*") if p.is_file()} == before
    run.train(str(photos), out=tmp_path / "run", settings=[*settings, "train.seed=1"], overwrite=True)
    assert sha256(tmp_path / "run" / "bundle" / "weights.safetensors") != before["weights.safetensors"]


def test_resume_refuses_other_settings_and_missing_runs(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    settings = [*tiny_settings, *LOOP, "data.workers=0"]
    _train(photos, tmp_path / "run", settings)
    with pytest.raises(ConfigError, match=r"train.epochs: 2 → 5"):
        _train(photos, tmp_path / "run", [*settings, "train.epochs=5"], resume=True)
    with pytest.raises(ConfigError, match="already holds a run"):
        _train(photos, tmp_path / "run", settings)
    with pytest.raises(CheckpointError, match="no run to resume"):
        _train(photos, tmp_path / "nothing", settings, resume=True)
    before = sha256(tmp_path / "run" / "bundle" / "weights.safetensors")
    _train(photos, tmp_path / "run", settings, resume=True)  # a finished run: nothing left to do
    assert sha256(tmp_path / "run" / "bundle" / "weights.safetensors") == before

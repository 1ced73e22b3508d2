"""The command line in this process, so that a test does not wait for torch again; and as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

from manylabel import console
from manylabel.cli import main

TINY = ["backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", "head.name=linear"]
PLAIN = {"COLUMNS": "160", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Answer:
    """What a command leaves behind, named as subprocess names it."""

    returncode: int
    stdout: str
    stderr: str


def settings(*values: str) -> list[str]:
    """As options: --set KEY=VALUE for each; of two for one key the later."""
    each = {value.split("=")[0]: value for value in values}
    return [part for value in each.values() for part in ("--set", value)]


def manylabel(*arguments: str | Path, cwd: Path | None = None) -> Answer:
    """Run `manylabel ARGUMENTS` here: the same entry point, its own exit code, what it printed where."""
    quiet, threads = console.QUIET, torch.get_num_threads()
    try:
        asked = mock.patch.object(sys, "argv", ["manylabel", *map(str, arguments)])
        with _elsewhere(cwd), _captured() as (out, errors), mock.patch.dict(os.environ, PLAIN), asked:
            code = _exit_code()
        return Answer(code, out(), errors())
    finally:
        console.QUIET = quiet
        torch.set_num_threads(threads)


def real_manylabel(*arguments: str | Path, cwd: Path | None = None) -> Answer:
    """Run it as a process of its own, as a user does."""
    command = [sys.executable, "-m", "manylabel", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, cwd=cwd, env={**os.environ, **PLAIN}, timeout=300)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
    return 0


@contextmanager
def _elsewhere(folder: Path | None) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _captured() -> Iterator[tuple]:
    """Standard output and errors as streams with a buffer, like real ones."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with mock.patch.object(sys, "stdout", streams[0]), mock.patch.object(sys, "stderr", streams[1]):
        yield tuple(lambda s=stream: s.buffer.getvalue().decode("utf-8", "replace") for stream in streams)

"""Processes of their own that need not wait for torch: forked from one that has imported everything and done nothing.

They begin as `python ARGUMENTS` would (-m module, -c code, or a script), in a session, folder and environment of their own,
and can be signalled and killed. A few tests start real ones (`real_manylabel`, torch's launcher): those show that they do.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

IMPORTED = [
    *("torch", "torchvision", "timm", "accelerate", "onnxruntime", "torch.distributed.run"),
    *("manylabel.cli", "manylabel.run", "manylabel.explain", "manylabel.inference.predictor", "manylabel.report"),
]
GRACE = 20.0  # seconds that one of several processes has to end after another failed


class Warm:
    """A process, named as subprocess names it."""

    def __init__(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        out: str | Path = os.devnull,
        err: str | Path = os.devnull,
    ) -> None:
        environment = dict(os.environ if env is None else env)
        words = [str(word) for word in arguments]
        given = (words, str(cwd or Path.cwd()), environment, str(out), str(err))
        with mock.patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1])):  # where the first one imports from
            self.process = _server().Process(target=_begin, args=given)
            self.process.start()
        self.pid: int = self.process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired("a warm process", timeout or 0.0)
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def run(
    *arguments: str | Path, processes: int = 1, cwd: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Wait for it; for all of them where several compute together, as torch's launcher would start them."""
    with TemporaryDirectory() as folder:
        outs, errs = ([Path(folder) / f"{kind}{rank}" for rank in range(processes)] for kind in ("out", "err"))
        places = _ranks(processes)
        begun = [
            Warm(*arguments, cwd=cwd, env={**os.environ, **places[rank]}, out=outs[rank], err=errs[rank])
            for rank in range(processes)
        ]
        codes = _wait_for_all(begun, timeout)
        said, complained = ("".join(file.read_text(encoding="utf-8") for file in files) for files in (outs, errs))
        code = next((code for code in codes if code), 0)
        return subprocess.CompletedProcess(arguments, code, said, complained)


def _ranks(processes: int) -> list[dict[str, str]]:
    if processes == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    shared |= {"LOCAL_WORLD_SIZE": str(processes), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]


def _wait_for_all(begun: list[Warm], timeout: float) -> list[int]:
    until = time.monotonic() + timeout
    try:
        while any(one.poll() is None for one in begun):
            if any(one.poll() for one in begun):
                until = min(until, time.monotonic() + GRACE)
            if time.monotonic() > until and not any(one.poll() for one in begun):
                raise subprocess.TimeoutExpired("warm processes", timeout)
            if time.monotonic() > until:
                break
            time.sleep(0.01)
    finally:
        for one in begun:
            one.send_signal(signal.SIGKILL)
    return [one.wait(10) for one in begun]


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def _begin(words: list[str], cwd: str, environment: dict[str, str], out: str, err: str) -> None:
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for file, number in ((out, 1), (err, 2)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    import torch

    torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", "1")))
    code = _run(words)
    gc.collect()  # what the frames of an exit held, such as workers that decode, ends before this process is joined to them
    sys.exit(code)


def _run(words: list[str]) -> str | int | None:
    """As __main__; with what it exits."""
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        return end.code
    return 0

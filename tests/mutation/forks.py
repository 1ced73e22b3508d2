"""Work in forks of this process: what it has imported costs nothing again, and what they break is theirs alone."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY = 8 << 30  # bytes of one fork: a mistake in a size must not take the machine with it
BROKEN = 70  # exit code of work that raised


@dataclass(frozen=True)
class Work:
    """Something to do in a fork within so many seconds. `run` returns the exit code."""

    name: Any
    run: Callable[[], int]
    seconds: float
    log: Path = Path(os.devnull)


def results(works: Iterable[Work], at_once: int) -> Iterator[tuple[Work, int | None]]:
    """Every work and its exit code as it ends; None = it took too long, negative = a signal ended it."""
    waiting, running = deque(works), dict[int, tuple[Work, float]]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                work = waiting.popleft()
                running[_begin(work)] = work, time.monotonic() + work.seconds
            for pid in list(running):
                work, end = running[pid]
                ended, status = os.waitpid(pid, os.WNOHANG)
                late = time.monotonic() > end
                if ended or late:
                    _end(pid, waited=bool(ended))
                    del running[pid]
                    yield work, os.waitstatus_to_exitcode(status) if ended else None
            time.sleep(0.01)
    finally:
        for pid in running:
            _end(pid, waited=False)


def _begin(work: Work) -> int:
    if pid := os.fork():
        return pid
    code = BROKEN
    try:
        os.setsid()  # with all that it starts it can be ended at once
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * work.seconds) + 1,) * 2)  # where this process is no more
        for number, path, mode in ((0, os.devnull, os.O_RDONLY), (1, work.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
            os.dup2(os.open(path, mode, 0o600), number)
        os.dup2(1, 2)
        code = int(work.run())
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end(pid: int, waited: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not waited:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it may not have its own group yet
        os.waitpid(pid, 0)

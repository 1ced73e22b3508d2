"""A command, or a piece of Python, in a process of its own: forked from this one, which has loaded everything, with
limits on time and memory."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import io
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

GB = 1 << 30
WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND
NOBODY = 65534
SLEEPING = 8.0  # seconds without any work, asleep: that is a hang
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Limits:
    """Of one process."""

    cpu: float = 40.0  # seconds of work
    wall: float = 240.0  # seconds of a clock; the machine may be busy
    memory: int = 3 * GB // 2  # bytes above what the libraries take
    sleeping: float = SLEEPING
    file_size: int | None = None


@dataclass
class Manners:
    """In which surroundings it runs."""

    folder: Path
    env: Mapping[str, str]
    umask: int = 0o022
    unprivileged: bool = False  # root writes where nobody may; here not
    nobody: bool = False  # another user altogether
    closed: tuple[int, ...] = ()  # streams that are closed
    before: Callable[[], None] = lambda: None  # in the process, at the very beginning


@dataclass
class Ending:
    """How a process ended."""

    code: int | None  # None: by a signal
    signal: int | None
    cpu: float
    wall: float
    memory: int  # bytes above what the libraries take
    hung: bool = False
    late: bool = False
    what: str = ""


@dataclass
class Process:
    """A process that runs; `wait` for its end."""

    pid: int
    limits: Limits
    base: int  # bytes that it had from its beginning
    drains: list[threading.Thread] = field(default_factory=list)  # of what it says
    started: float = field(default_factory=time.monotonic)
    ending: Ending | None = None

    def wait(self, until: Callable[[], bool] = lambda: False) -> Ending | None:
        """The end of it; None where `until` came first."""
        pause, worked, worked_at = 0.002, -1.0, time.monotonic()
        while self.ending is None:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            now = time.monotonic()
            if pid:
                self.ending = self._ended(status, used, now)
                break
            if until():
                return None
            work, state = _work_of(self.pid)
            if work != worked or state not in "SDT":
                worked, worked_at = work, now
            hung = now - worked_at > self.limits.sleeping
            if hung or now - self.started > self.limits.wall:
                self.kill(signal.SIGKILL)
                _, status, used = os.wait4(self.pid, 0)
                self.ending = self._ended(status, used, now)
                self.ending.hung, self.ending.late = hung, not hung
                break
            time.sleep(pause)
            pause = min(pause * 1.3, 0.05)
        return self.ending

    def _ended(self, status: int, used: resource.struct_rusage, now: float) -> Ending:
        self._sweep()
        for drain in self.drains:
            drain.join(10)
        by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.waitstatus_to_exitcode(status) if by is None else None
        memory = max(0, used.ru_maxrss * 1024 - self.base)
        return Ending(code, by, used.ru_utime + used.ru_stime, now - self.started, memory)

    def _sweep(self) -> None:
        """Its own children, should it have left some."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        """As a terminal does it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    @property
    def alive(self) -> bool:
        return self.ending is None and self.wait(lambda: True) is None


def _work_of(pid: int) -> tuple[float, str]:
    """Seconds that a process and its children have worked, and whether it sleeps."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, "R"
    work, state = sum(map(int, fields[11:15])), fields[0]
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    for child in children:
        more, busy = _work_of(int(child))
        work += more
        state = busy if busy not in "SDT" else state
    return work / TICK, state


def start(work: Callable[[], int], manners: Manners, limits: Limits, out: Path, errors: Path) -> Process:
    """Fork, and call `work` there; what it returns is the exit code."""
    # what it says must arrive although its files are limited, as on a terminal
    pipes = [os.pipe(), os.pipe()] if limits.file_size is not None else []
    pid = os.fork()
    if not pid:
        for reader, _ in pipes:
            os.close(reader)
        handles = [writer for _, writer in pipes] or [os.open(path, WRITE, 0o600) for path in (out, errors)]
        _live(work, manners, limits, handles)
    with contextlib.suppress(OSError):  # it did so itself
        os.setpgid(pid, pid)
    return Process(
        pid, limits, _resident(), [_drained(pipe, path) for pipe, path in zip(pipes, (out, errors), strict=False)]
    )


def _drained(pipe: tuple[int, int], path: Path) -> threading.Thread:
    os.close(pipe[1])

    def drain() -> None:
        with open(pipe[0], "rb") as source, open(path, "wb") as file:
            shutil.copyfileobj(source, file)

    thread = threading.Thread(target=drain, daemon=True)
    thread.start()
    return thread


def start_anew(command: list[str], manners: Manners, limits: Limits, out: Path, errors: Path) -> Process:
    """The same with a program of its own, that begins with nothing loaded."""

    def replace() -> int:
        os.execve(command[0], command, dict(manners.env))

    return start(replace, manners, Limits(limits.cpu, limits.wall, limits.memory + GB, limits.sleeping), out, errors)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def _live(work: Callable[[], int], manners: Manners, limits: Limits, handles: list[int]) -> NoReturn:
    code = 70
    try:
        os.setpgid(0, 0)
        _take_place(manners, limits, handles)
        code = work()
    except SystemExit as end:
        code = _code_of(end)
    except BaseException:  # whatever it is, it is told as an interpreter would tell it
        code = 1
        _tell()
    finally:
        os._exit(_close(code))


def _take_place(manners: Manners, limits: Limits, handles: list[int]) -> None:
    """`handles`: where standard output and standard error go."""
    for number, handle in enumerate([os.open("/dev/null", os.O_RDONLY), *handles]):
        os.dup2(handle, number)
        os.close(handle)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(manners.env)
    tempfile.tempdir = None
    os.umask(manners.umask)
    os.chdir(manners.folder)
    if manners.unprivileged and os.getuid() == 0:
        _drop_capabilities()
    if manners.nobody and os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    encoding, _, mistakes = manners.env.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding=encoding, errors=mistakes or "strict")  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False),  # noqa: SIM115
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
    manners.before()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = int(limits.cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    if limits.memory:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
        resource.setrlimit(resource.RLIMIT_AS, (size + 2 * limits.memory + GB,) * 2)
    if limits.file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python itself does: then writing is an OSError
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size,) * 2)
    for number in manners.closed:
        os.close(number)


def _drop_capabilities() -> None:
    """Of root: those that set the modes of files aside."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    for low in (0, 1, 2):  # effective, permitted, inheritable: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
        sets[low] &= ~0b1110
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


def _code_of(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return int(end.code or 0)
    print(end.code, file=sys.stderr)
    return 1


def _tell() -> None:
    try:
        traceback.print_exc()
    except BaseException:
        os.write(2, b"Traceback (most recent call last): it could not be printed\n")


def _close(code: int) -> int:
    """What an interpreter does at its end."""
    try:
        atexit._run_exitfuncs()
    except BaseException:
        _tell()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        return code or 120
    return code

"""The way to standard output and standard error: nothing strange goes through, and nothing fails for want of a letter.

`guard_streams` stands at the start of the program, so it holds for what libraries print, too: usage errors, warnings,
tracebacks. Rich, which must send escape sequences of its own, goes past it by `rich_proxied_file`; what it is given to
show is escaped in rich_console.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from manylabel.runtime.printable import printable

READER_GONE = 141  # the exit code of one whose output nobody reads any more, as shells say it: 128 + SIGPIPE
STREAMS = {"stdout": "standard output", "stderr": "standard error"}


def turn_off(stream: TextIO) -> None:
    """What is written to it from now on, or still waits to be, goes nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def echo(text: object = "", err: bool = False, nl: bool = True) -> None:
    """A line for whoever called the command."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(str(text)) + ("\n" if nl else ""))
    stream.flush()


class GuardedStream:
    """A text stream that shows what a terminal would obey, and whose errors say which stream it was."""

    def __init__(self, stream: TextIO, title: str) -> None:
        self.rich_proxied_file = stream
        self.title = title

    def write(self, text: str) -> int:
        with self._named():
            self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with self._named():
            self.rich_proxied_file.flush()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            turn_off(self.rich_proxied_file)  # or the interpreter would try again at its end
            if isinstance(error, BrokenPipeError):
                raise SystemExit(READER_GONE) from None
            error.filename = error.filename or self.title
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def guard_streams() -> None:
    """For the whole process: an encoding that lacks a letter shows \\xb1 in its place, and a closed stream is no error."""
    for name, title in STREAMS.items():
        stream = getattr(sys, name)
        if isinstance(stream, GuardedStream):
            continue
        if stream is None:  # closed by whoever called us
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, GuardedStream(stream, title))

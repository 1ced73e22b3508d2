"""Ctrl-C and SIGTERM: the first asks the loop to save and end, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any, TypeVar

from manylabel.error import ManylabelError

T = TypeVar("T")


class Stopped(ManylabelError):
    """Asked to stop; everything up to here is saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class StopRequest:
    """`with StopRequest() as stop:`; then `stop.signal` is None until somebody asks."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop_if_asked(self, message: str) -> None:
        if self.signal is not None:
            raise Stopped(message, self.signal)

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = number
        os.write(2, b"\nstopping; once more to end at once without saving\n")
        if hasattr(signal, "SIGCHLD"):  # torch raises wherever we are when a worker ends with us
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def unless_stopped(batches: Iterable[T], stop: StopRequest | None) -> Iterator[T]:
    """The batches; when a signal to the whole process group has ended the workers, the end instead of an error:
    torch's own, or what is left of a connection to a worker that ended while it handed over a batch."""
    try:
        yield from batches
    except (RuntimeError, OSError, EOFError):
        if stop is None or stop.signal is None:
            raise

"""Batches end, instead of failing, when a signal to the whole process group took the workers with it."""

import signal
from collections.abc import Iterator

import pytest

from manylabel.stop import StopRequest, unless_stopped

OF_A_DEAD_WORKER = [
    RuntimeError("DataLoader worker (pid 7) exited unexpectedly"),
    ConnectionResetError(104, "Connection reset by peer"),
    ConnectionRefusedError(111, "Connection refused"),
    FileNotFoundError(2, "No such file or directory"),
    EOFError(),
]


def _batches(error: Exception) -> Iterator[int]:
    yield 1
    raise error


@pytest.mark.parametrize("error", OF_A_DEAD_WORKER, ids=lambda error: type(error).__name__)
def test_a_dead_worker_ends_the_batches_only_when_a_stop_was_asked(error: Exception) -> None:
    stop = StopRequest()
    with pytest.raises(type(error)):
        list(unless_stopped(_batches(error), stop))
    with pytest.raises(type(error)):
        list(unless_stopped(_batches(error), None))
    stop.signal = signal.SIGTERM
    assert list(unless_stopped(_batches(error), stop)) == [1]


def test_other_errors_are_raised_also_after_a_stop() -> None:
    stop = StopRequest()
    stop.signal = signal.SIGINT
    with pytest.raises(ValueError, match="of our own"):
        list(unless_stopped(_batches(ValueError("of our own")), stop))

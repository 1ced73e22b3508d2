"""What people see while work goes on: one console, and progress bars on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from manylabel.runtime.rich_console import Terminal

console = Terminal(stderr=True)
QUIET = False  # set by --quiet and by tests


def say(text: str) -> None:
    """A line for the person at the terminal (standard error, so that --json output stays clean)."""
    if not QUIET:
        console.print(text, soft_wrap=True)


def warn(text: str) -> None:
    console.print(f"note: {text}", style="yellow", soft_wrap=True)


def _bar(*columns: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        *columns,
        TimeRemainingColumn(),
        console=console,
        disable=QUIET or not console.is_terminal,
        transient=True,
    )


@contextmanager
def counting(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """`with counting("decoding", n) as advance: advance(k)`"""
    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


@contextmanager
def transferring(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """The same for bytes."""
    with _bar(DownloadColumn(), TransferSpeedColumn()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


class TrainingBar:
    """A bar over all steps of a run, with loss, goal and rate; it is there from the first step on, until it is closed."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def show(self, done: int, total: int, text: str) -> None:
        if self._progress is None:
            self._progress = _bar(MofNCompleteColumn(), TextColumn("{task.fields[text]}", markup=False))
            self._progress.start()
            self._task = self._progress.add_task("training", total=total, text="")
        self._progress.update(self._task, completed=done, total=total, text=text)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __enter__(self) -> TrainingBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

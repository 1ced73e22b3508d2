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


@contextmanager
def training(total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar over all batches of a run; `show(done, text)` moves it and says loss, mAP and rate."""
    with _bar(MofNCompleteColumn(), TextColumn("{task.fields[text]}", markup=False)) as bar:
        task = bar.add_task("training", total=total, text="")
        yield lambda count, text: bar.update(task, completed=count, text=text)

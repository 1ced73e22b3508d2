"""Errors of parts that know of one data set only, in words of the task they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from manylabel.error import ManylabelError


@contextmanager
def in_words_of(task: str) -> Iterator[None]:
    """What goes wrong inside names the task, and the settings that mend it as `tasks.NAME.…`."""
    try:
        yield
    except ManylabelError as error:
        text = str(error).replace("--set data.", f"--set tasks.{task}.data.")
        text = text.replace("--task ", f"--set tasks.{task}.kind=")
        error.args = (text if f"task {task}" in text else f"task {task}: {text}",)
        raise

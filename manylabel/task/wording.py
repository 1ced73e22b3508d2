"""Errors of parts that know of one data set only, in words of the task they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from manylabel.config import DataConfig
from manylabel.error import ManylabelError
from manylabel.stop import Stopped

SETTING = re.compile(rf"(?<![\w./\\])data\.(?=({'|'.join(each.name for each in fields(DataConfig))})\b)")


@contextmanager
def in_words_of(task: str, among_others: bool = True) -> Iterator[None]:
    """What goes wrong inside names the task, and the settings that mend it as `tasks.NAME.…`; not where it is the only
    one, which needs no name."""
    try:
        yield
    except Stopped:
        raise
    except ManylabelError as error:
        if among_others:
            text = SETTING.sub(f"tasks.{task}.data.", str(error)).replace("--kind ", f"--set tasks.{task}.kind=")
            error.args = (text if re.search(rf"\btask {task}\b", text) else f"task {task}: {text}",)
        raise

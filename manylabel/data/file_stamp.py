"""Whether a file is still the one that was looked at, told without reading it."""

from __future__ import annotations

import os
import time
from pathlib import Path

YOUNG = 2.0  # seconds: the coarsest clock of a file system that people use


def file_stamp(path: Path | str, facts: os.stat_result | None = None) -> str:
    """Text that changes when a file does: whoever writes it, replaces it or sets its time back (`cp -p`, `rsync -t`, a
    restore) changes its inode or the time of the last change of its entry, which no program can choose. A link stands
    for what it points to. Moving or touching a file changes the text, too, and nothing but time is lost by that.

    A file that changed just now may change again within one tick of the clock: its stamp is never the same twice.
    """
    try:
        facts = facts or os.stat(path)
    except (OSError, ValueError):
        return f"{path}|missing"
    text = f"{os.path.abspath(path)}|{facts.st_size}|{facts.st_mtime_ns}|{facts.st_ctime_ns}|{facts.st_ino}"
    now = time.time_ns()
    return text if now - facts.st_ctime_ns > YOUNG * 1e9 else f"{text}|{now}"

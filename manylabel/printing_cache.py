"""What `manylabel cache list` prints."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from manylabel.runtime.rich_console import Terminal


def print_cache(entries: Sequence[Any], place: Path) -> None:
    out = Terminal()
    if not entries:
        out.print(f"nothing in {place}", soft_wrap=True)
        return
    table = Table("key", "data", "images", "view", "stages", "MB", "used")
    for entry in entries:
        name = Text(f"{entry.facts.get('table', '?')}\n{entry.facts.get('backbone', '')}")
        shown = [_stage(file) for file in entry.files] if not entry.problems else list(entry.problems)
        images = str(entry.facts.get("images", "?"))
        view = str(entry.view or "plain")
        table.add_row(
            entry.key[:12], name, images, view, Text("\n".join(shown)), f"{entry.bytes / 1e6:.0f}", _ago(entry.used)
        )
    out.print(table)
    total = sum(entry.bytes for entry in entries)
    out.print(f"{total / 1e9:.2f} GB in {place}", soft_wrap=True)


def _stage(file: Any) -> str:
    shape = "×".join(map(str, file.shape))
    rest = "" if file.complete else f", {file.done / max(file.images, 1):.0%} done"
    return f"{file.name} {shape} {file.dtype}{rest}"


def _ago(moment: float) -> str:
    hours = (time.time() - moment) / 3600
    return f"{hours / 24:.0f} days ago" if hours >= 48 else f"{hours:.0f} h ago" if hours >= 1 else "just now"

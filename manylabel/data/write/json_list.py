"""A long JSON list, written one item at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manylabel.storage.json_text import to_json
from manylabel.storage.receipt import replacing_ours


@contextmanager
def json_list(path: Path, field: str = "") -> Iterator[Callable[[Any], None]]:
    """`with json_list(path) as add: add(item)`; with a field, the list is inside an object under that name."""
    with replacing_ours(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as out:
        out.write(f"{{{to_json(field, indent=None)}: [" if field else "[")
        separator = "\n"

        def add(item: Any) -> None:
            nonlocal separator
            out.write(separator + to_json(item, indent=None))
            separator = ",\n"

        yield add
        out.write("\n]}\n" if field else "\n]\n")

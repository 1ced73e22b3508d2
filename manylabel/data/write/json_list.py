"""A long JSON list, written one item at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manylabel.atomic import replacing


def json_text(value: Any) -> str:
    """On one line, with every character as itself; NaN is refused, as it is no JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


@contextmanager
def json_list(path: Path, field: str = "") -> Iterator[Callable[[Any], None]]:
    """`with json_list(path) as add: add(item)`; with a field, the list is inside an object under that name."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as out:
        out.write(f"{{{json_text(field)}: [" if field else "[")
        separator = "\n"

        def add(item: Any) -> None:
            nonlocal separator
            out.write(separator + json_text(item))
            separator = ",\n"

        yield add
        out.write("\n]}\n" if field else "\n]\n")

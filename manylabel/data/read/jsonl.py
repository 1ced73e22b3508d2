"""JSON lines: one object per image, such as {"file_name": "a.jpg", "labels": ["cat", "dog"], "split": "train"}.

The file is gone through once to see which fields it has, then read line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.row_file import read_rows
from manylabel.data.read.text_file import parse_json, text_lines
from manylabel.data.record import Reading
from manylabel.error import DataError

SUFFIXES = (".jsonl", ".ndjson")


def json_lines(path: Path, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of every line that is not blank; `name` is what messages call the file."""
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: {line.strip()[:40]!r} is no object {{…}}; write one on each line")
        yield f"{name or path.name}, line {number}", row


def read_jsonl(path: Path, config: DataConfig) -> Reading:
    """A file of JSON lines whose images lie beside it, or in one folder beside it."""
    return read_rows("jsonl", path, lambda: json_lines(path), config)


def _sniff(path: Path) -> str:
    return f"{path.suffix.lower()[1:]} file" if path.suffix.lower() in SUFFIXES and path.is_file() else ""


FORMAT = Format("jsonl", "JSON lines", _sniff, read_jsonl)

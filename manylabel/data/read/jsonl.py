"""JSON lines: one object per image, such as {"file_name": "a.jpg", "labels": ["cat", "dog"], "split": "train"}."""

from __future__ import annotations

from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.rows import LabelFile, Rows, read_rows
from manylabel.data.read.text_file import parse_json, text_lines
from manylabel.data.record import Format, Reading
from manylabel.error import DataError

SUFFIXES = (".jsonl", ".ndjson")


def json_lines(path: Path, name: str = "") -> Rows:
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
    return read_rows(path, [LabelFile(path)], lambda file: json_lines(path), config)


def _sniff(path: Path) -> str:
    return f"{path.suffix.lower()[1:]} file" if path.suffix.lower() in SUFFIXES and path.is_file() else ""


FORMAT = Format("jsonl", "JSON lines", _sniff, read_jsonl)

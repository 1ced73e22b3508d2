"""Rows of a .jsonl file of ours: an object in each line; a last line that a kill cut off is left out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from manylabel.error import DataError
from manylabel.storage.json_text import parse_json, to_json
from manylabel.storage.plain_file import MB, read_text

LARGEST = 64 * MB


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All whole rows. Earlier versions wrote NaN for what is not defined."""
    rows = []
    for number, line in enumerate(read_text(path, LARGEST).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line, f"{path}, row {number}", advice="", nan=True)
        except DataError:
            break
        if not isinstance(row, dict):
            raise DataError(f"{path}, row {number}: {line[:40]!r} is no JSON object")
        rows.append(row)
    return rows


def row_text(row: dict[str, Any]) -> str:
    """A row as one line; what is not defined becomes null, for NaN is no JSON."""
    return to_json({key: _defined(value) for key, value in row.items()}, indent=None) + "\n"


def _defined(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _defined(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_defined(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

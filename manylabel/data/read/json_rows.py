"""Plain JSON: a list of rows [{"file_name": "a.jpg", "labels": ["cat"]}, …], the same inside one field of an object, or
a mapping {"a.jpg": ["cat", "dog"], "b.jpg": {"labels": ["cat"], "split": "train"}}.

The file is gone through once to see which fields it has, then read entry by entry.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.format import Format
from manylabel.data.read.row_file import Rows, read_rows
from manylabel.data.read.sheet import FILE_COLUMNS, LABEL_COLUMNS, OTHER_FILE_COLUMNS, plain_name
from manylabel.data.read.text_file import json_events, json_items, json_kind, json_pairs
from manylabel.data.record import Reading
from manylabel.data.walk import is_image_name
from manylabel.error import DataError

LISTS = tuple(f"{field}.item" for field in ("images", "data", "annotations", "samples", "items"))  # in an object
MAPPING = ""  # the place of rows that are named by their images
MOST_EVENTS = 100_000  # pieces of JSON before the rows; a file with more in front is something else


def read_json_rows(path: Path, config: DataConfig) -> Reading:
    """A file of rows whose images lie beside it, or in one folder beside it."""
    place = _place(path)
    if place is None:
        deque(json_items(path, "item"), maxlen=0)  # says so where it is no JSON at all
        raise DataError(
            f'{path} holds no rows; write a list [{{"file_name": "a.jpg", "labels": ["cat"]}}, …] or a mapping '
            '{"a.jpg": ["cat"], …}'
        )
    return read_rows("json", path, lambda: _pairs(path) if place == MAPPING else _items(path, place), config)


def _items(path: Path, place: str) -> Rows:
    for number, row in enumerate(json_items(path, place), 1):
        where = f"{path.name}, item {number}"
        if not isinstance(row, dict):
            raise DataError(f"{where}: it is no object {{…}} with 'file_name' and 'labels'; write one for each image")
        yield where, row


def _pairs(path: Path) -> Rows:
    """Each entry of a mapping as a row; what is no object is the labels themselves."""
    for name, value in json_pairs(path, MAPPING):
        row = value if isinstance(value, dict) else {"labels": value}
        yield f"{path.name}, entry {name[:80]!r}", {"file_name": name, **row}


# --- detection --------------------------------------------------------------------------------------------------


def _place(path: Path) -> str | None:
    """Where the rows are: 'item', 'images.item', …, MAPPING; None if there are none. Never an error."""
    kind = json_kind(path)
    if kind != "object":
        return "item" if kind == "list" else None
    first = True
    try:
        for prefix, event, value in islice(json_events(path), MOST_EVENTS):
            if prefix == "" and event == "map_key":
                if first and is_image_name(value):
                    return MAPPING
                first = False
            elif event == "start_map" and prefix in LISTS:
                return prefix
    except DataError:
        pass
    return None


def _sniff(path: Path) -> str:
    if path.suffix.lower() != ".json" or not path.is_file():
        return ""
    place = _place(path)
    if place is None or place == MAPPING:
        return "" if place is None else "images and their labels"
    try:
        row = next(json_items(path, place), None)
    except DataError:
        return ""
    if not isinstance(row, dict) or not _names_image(row):
        return ""
    return "a list of rows" if place == "item" else f"rows in {place.removesuffix('.item')!r}"


def _names_image(row: dict[str, Any]) -> bool:
    """Whether a row is about an image: a file with its suffix, or labels beside a name without."""
    fields = {plain_name(name): value for name, value in row.items()}
    files = [fields.get(name) for name in FILE_COLUMNS + OTHER_FILE_COLUMNS]
    if any(isinstance(file, str) and is_image_name(file.strip()) for file in files):
        return True
    usual = any(isinstance(fields.get(name), str) for name in FILE_COLUMNS)
    return usual and any(name in fields for name in LABEL_COLUMNS)


FORMAT = Format("json", "JSON", _sniff, read_json_rows)

"""Plain JSON: a list of rows [{"file_name": "a.jpg", "labels": ["cat"]}, …], the same inside one field of an object, or
a mapping {"a.jpg": ["cat", "dog"], "b.jpg": {"labels": ["cat"], "split": "train"}}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.columns import FILE_COLUMNS, LABEL_COLUMNS, OTHER_FILE_COLUMNS, plain_name
from manylabel.data.read.rows import LabelFile, read_rows
from manylabel.data.read.text_file import decode_json, first_item, json_kind, read_text
from manylabel.data.record import Format, Reading
from manylabel.data.walk import is_image_name
from manylabel.error import DataError

FIELDS = ("images", "data", "annotations", "samples", "items")  # of an object that may hold the rows


def read_json_rows(path: Path, config: DataConfig) -> Reading:
    """A file of rows whose images lie beside it, or in one folder beside it."""
    value = decode_json(path)
    rows, _ = _rows(value)
    if rows is None:
        raise DataError(
            f'{path} holds no rows; write a list [{{"file_name": "a.jpg", "labels": ["cat"]}}, …] or a mapping '
            '{"a.jpg": ["cat"], …}'
        )
    given = _items(path, rows) if isinstance(rows, list) else _entries(path)
    return read_rows(path, [LabelFile(path)], lambda _: iter(given), config)


def _rows(value: Any) -> tuple[list[Any] | dict[str, Any] | None, str]:
    """(the list of rows, or the mapping of images to their labels; what it is)"""
    if isinstance(value, list):
        return value, "a list of rows"
    if isinstance(value, dict):
        if is_image_name(next(iter(value), "")):
            return value, "images and their labels"
        for name in value:
            if name in FIELDS and isinstance(value[name], list) and isinstance(next(iter(value[name]), None), dict):
                return value[name], f"rows in {name!r}"
    return None, ""


def _items(path: Path, rows: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for number, row in enumerate(rows, 1):
        where = f"{path.name}, item {number}"
        if not isinstance(row, dict):
            raise DataError(f"{where}: it is no object {{…}} with 'file_name' and 'labels'; write one for each image")
        found.append((where, row))
    return found


def _entries(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Each entry of a mapping as a row, also one that stands twice; what is no object is the labels themselves."""
    again: list[tuple[str, Any]] = []

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                again.append((name, found[name]))
            found[name] = value
        return found

    rows = json.loads(read_text(path), object_pairs_hook=read_object)
    entries = [*rows.items(), *((name, value) for name, value in again if name in rows)]
    return [
        (
            f"{path.name}, entry {name[:80]!r}",
            {"file_name": name, **(value if isinstance(value, dict) else {"labels": value})},
        )
        for name, value in entries
    ]


def _sniff(path: Path) -> str:
    if path.suffix.lower() != ".json" or not json_kind(path):
        return ""
    try:
        rows, what = _rows([first_item(path)] if json_kind(path) == "list" else decode_json(path))
    except DataError:
        return ""
    return what if isinstance(rows, dict) or (rows and _names_image(rows[0])) else ""


def _names_image(row: Any) -> bool:
    """Whether a row is about an image: a file with its suffix, or labels beside a name without."""
    fields = {plain_name(name): value for name, value in row.items()} if isinstance(row, dict) else {}
    files = [fields.get(name) for name in FILE_COLUMNS + OTHER_FILE_COLUMNS]
    if any(isinstance(file, str) and is_image_name(file.strip()) for file in files):
        return True
    usual = any(isinstance(fields.get(name), str) for name in FILE_COLUMNS)
    return usual and any(name in fields for name in LABEL_COLUMNS)


FORMAT = Format("json", "JSON", _sniff, read_json_rows)

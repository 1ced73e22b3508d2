"""Cells that a spreadsheet shows instead of running: a leading =, +, -, @ would start a formula."""

from __future__ import annotations

import csv
from typing import Any, Protocol

from manylabel.error import DataError

STARTS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(text: str) -> str:
    return f"'{text}" if text[:1] in (*STARTS, "'") else text


def plain_cell(text: str) -> str:
    """What safe_cell was given."""
    return text[1:] if text[:1] == "'" and text[1:2] in (*STARTS, "'") else text


class _Text(Protocol):
    def write(self, text: str, /) -> object: ...


class _PlainEnds:
    """Takes rows as csv writes them, one at a time, and ends each with a single \\n."""

    def __init__(self, file: _Text) -> None:
        self.file = file

    def write(self, row: str) -> object:
        return self.file.write(f"{row[:-2]}\n")


def sheet_writer(file: _Text, separator: str = ",") -> Any:
    """A csv.writer. What ends its lines decides what it puts into quotes, and a lone \\r would end a row, too."""
    return csv.writer(_PlainEnds(file), delimiter=separator, lineterminator="\r\n")


def refuse_cell(text: str, where: str, what: str) -> None:
    """Of a sheet that is read again: stop where this text would not come back as it is."""
    if "\n" in text or "\r" in text:
        why = "runs over several lines"
    elif "\0" in text:
        why = "holds a character that ends a text"
    elif text.encode("utf-8", "replace").decode("utf-8") != text:
        why = "holds half of a character, or bytes that are no UTF-8"
    else:
        return
    raise DataError(f"{where}: {what} {text!r} {why}, which a sheet cannot hold; rename it, or write another format")

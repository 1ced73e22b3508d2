"""Text and JSON from strangers: read as they come, with errors that name the place."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manylabel.error import DataError

DEEPEST = 100  # levels of JSON
STEP = np.zeros(256, np.int32)  # by how much each byte changes the level
STEP[list(b"[{")], STEP[list(b"]}")] = 1, -1


def read_text(path: Path) -> str:
    """A whole small file as text."""
    return "".join(text_lines(path))


def text_lines(path: Path) -> Iterator[str]:
    """The lines with their ends, one at a time; a byte-order mark is dropped."""
    _refuse_odd_file(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError:
        raise DataError(
            f"{path}, row {_undecodable_line(path)}: not UTF-8 text; save the file with UTF-8 encoding"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _undecodable_line(path: Path) -> int:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def json_items(path: Path, prefix: str) -> Iterator[Any]:
    """The values at an ijson prefix ('images.item'; 'item' for a list at the top), one at a time in bounded memory."""
    import ijson

    with _json_stream(path) as file:
        yield from ijson.items(file, prefix, use_float=True)


def json_pairs(path: Path, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The names and values of the object at an ijson prefix ('' for the top), one at a time."""
    import ijson

    with _json_stream(path) as file:
        yield from ijson.kvitems(file, prefix, use_float=True)


def json_events(path: Path) -> Iterator[tuple[str, str, Any]]:
    """(prefix, event, value) of each piece, as ijson tells them."""
    import ijson

    with _json_stream(path) as file:
        yield from ijson.parse(file)


@contextmanager
def _json_stream(path: Path) -> Iterator[ShallowJson]:
    """The file behind its byte-order mark; what the parser says of it leaves as a DataError."""
    import ijson

    _refuse_odd_file(path)
    try:
        with open(path, "rb") as file:
            if file.read(3) != b"\xef\xbb\xbf":
                file.seek(0)
            yield ShallowJson(file)
    except (ijson.JSONError, UnicodeDecodeError, ValueError, OverflowError) as error:
        what = "cut off or no JSON" if isinstance(error, ijson.IncompleteJSONError) else "not valid JSON"
        if mentions(path, b"NaN"):
            what = "no JSON where it says NaN, as Python writes it,"
        raise DataError(f"{path} is {what} ({_first_line(error)}); fetch or export it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """A whole small JSON file."""
    return parse_json(read_text(path), str(path), rows=True)


def parse_json(text: str | bytes, where: str, rows: bool = False) -> Any:
    """A short JSON text; errors say `where` it stands, and in which of its rows."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f", row {error.lineno}" if rows else ""
        raise DataError(f"{where}{line}: cut off or no valid JSON ({error.msg}); export it again") from None
    except UnicodeDecodeError:
        raise DataError(f"{where}: not UTF-8 text") from None
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"{where}: no valid JSON ({_first_line(error)})") from None
    except RecursionError:
        raise DataError(f"{where}: nested too deep to be labels") from None


def json_kind(path: Path) -> str:
    """'list', 'object' or '' by the first visible character."""
    if not path.is_file():
        return ""
    try:
        with open(path, "rb") as file:
            start = file.read(1024).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    except OSError:
        return ""
    return {b"[": "list", b"{": "object"}.get(start, "")


def first_item(path: Path) -> Any:
    """The first entry of a list at the top, None where there is none; never an error."""
    try:
        return next(json_items(path, "item"), None) if json_kind(path) == "list" else None
    except DataError:
        return None


def mentions(path: Path, *words: bytes) -> bool:
    """Whether the bytes of a file hold all of these, without reading it into memory."""
    if not path.is_file():  # opening a pipe would wait for ever
        return False
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return all(data.find(word) >= 0 for word in words)
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return False


def _refuse_odd_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is a folder or a pipe, not a file; name a file")


class ShallowJson:
    """A stream of JSON that ends in an error where it is nested deeper than any label file: a parser keeps the path to
    where it is, so that 200 kB of brackets would take gigabytes."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.depth = 0
        self.in_text = False
        self.escaped = False

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self._look(data)
        return data

    def _look(self, data: bytes) -> None:
        if self.escaped:
            data = b"_" + data[1:]
        plain = data.replace(b"\\\\", b"__")
        self.escaped = plain.endswith(b"\\")
        signs = np.frombuffer(plain.replace(b'\\"', b"__"), np.uint8)
        quotes = np.cumsum(signs == ord('"')) + self.in_text
        depth = self.depth + np.cumsum(np.where(quotes % 2 == 0, STEP[signs], 0))
        if len(depth):
            if depth.max() > DEEPEST:
                raise ValueError(f"nested more than {DEEPEST} deep")
            self.depth = int(depth[-1])
            self.in_text = bool(quotes[-1] % 2)


def _first_line(error: Exception) -> str:
    text = str(error.args[0] if error.args else error)
    return (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip().split("\n")[0][:120]

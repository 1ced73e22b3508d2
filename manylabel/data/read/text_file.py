"""Text and JSON from strangers: read as they come, with errors that name the place."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manylabel.error import DataError
from manylabel.storage import json_text as storage
from manylabel.storage.json_depth import ShallowJson

LONGEST_LINE = 1 << 25  # characters


def read_text(path: Path) -> str:
    """A whole small file as text."""
    return "".join(text_lines(path))


def text_lines(path: Path) -> Iterator[str]:
    """The lines with their ends, one at a time; a byte-order mark is dropped."""
    _refuse_odd_file(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for number in itertools.count(1):
                line = file.readline(LONGEST_LINE)
                if len(line) == LONGEST_LINE:
                    raise DataError(f"{path}, row {number}: longer than a line of labels can be; is it the right file?")
                if not line:
                    return
                yield line
    except UnicodeDecodeError:
        raise DataError(
            f"{path}, row {_undecodable_line(path)}: not UTF-8 text; save the file with UTF-8 encoding"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _undecodable_line(path: Path) -> int:
    with open(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
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
    """A short JSON text of labels, in which NaN, as Python writes it, may stand for nothing."""
    return storage.parse_json(text, where, DataError, rows=rows, nan=True)


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


def _first_line(error: Exception) -> str:
    text = str(error.args[0] if error.args else error)
    return (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip().split("\n")[0][:120]

"""Text and JSON from strangers: read as they come, with errors that name the place."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from manylabel.error import DataError


def read_text(path: Path) -> str:
    """A whole small file as text."""
    return "".join(text_lines(path))


def text_lines(path: Path) -> Iterator[str]:
    """The lines with their ends, one at a time; a byte-order mark is dropped."""
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
def _json_stream(path: Path) -> Iterator[BinaryIO]:
    """The file behind its byte-order mark; what the parser says of it leaves as a DataError."""
    import ijson

    try:
        with open(path, "rb") as file:
            if file.read(3) != b"\xef\xbb\xbf":
                file.seek(0)
            yield file
    except ijson.IncompleteJSONError as error:
        raise DataError(f"{path} is cut off or no JSON ({_first_line(error)}); fetch or export it again") from None
    except (ijson.JSONError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise DataError(f"{path} is not valid JSON ({_first_line(error)}); export it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """A whole small JSON file."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}, row {error.lineno}: cut off or no valid JSON ({error.msg}); export it again"
        ) from None
    except RecursionError:
        raise DataError(f"{path}: JSON nested too deep to be a label file") from None


def json_kind(path: Path) -> str:
    """'list', 'object' or '' by the first visible character."""
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
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return all(data.find(word) >= 0 for word in words)
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return False


def _first_line(error: Exception) -> str:
    text = str(error.args[0] if error.args else error)
    return (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip().split("\n")[0][:120]

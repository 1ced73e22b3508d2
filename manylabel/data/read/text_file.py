"""Text and JSON from strangers: read as they come, with errors that name the place."""

from __future__ import annotations

import codecs
import itertools
import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from manylabel.error import DataError
from manylabel.storage import json_text as storage

LONGEST_LINE = 1 << 25  # characters
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PEEK = 1 << 20  # bytes
_ANY = msgspec.json.Decoder()


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


def decode_json(path: Path, decoder: Any = _ANY) -> Any:
    """A whole JSON file, however large; what the parser says of it leaves as a DataError."""
    _refuse_odd_file(path)
    try:
        data = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
        text = codecs.getincrementaldecoder(
            "utf-8"
        )()  # msgspec does not look at the names of fields that it passes over
        for start in range(0, len(data) + 1, PEEK):
            text.decode(data[start : start + PEEK], final=start + PEEK > len(data))
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise DataError(f"{path.name}{_entry(str(error))}; mend it or export the file again") from None
    except RecursionError:
        raise DataError(f"{path} is not valid JSON (nested too deep); fetch or export it again") from None
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        what = "cut off or no JSON" if "truncated" in str(error) else "not valid JSON"
        if mentions(path, b"NaN"):
            what = "no JSON where it says NaN, as Python writes it,"
        raise DataError(f"{path} is {what} ({str(error)[:120]}); fetch or export it again") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _entry(said: str) -> str:
    """', images, entry 3: Expected `object`, got `str`' of 'Expected `object`, got `str` - at `$.images[2]`'."""
    reason, _, place = said.partition(" - at ")
    steps = re.findall(r"\.(\w+)|\[(\d+)\]", place)
    return "".join(f", {name}" if name else f", entry {int(number) + 1}" for name, number in steps) + f": {reason}"


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
            start = file.read(1024).removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
    except OSError:
        return ""
    return {b"[": "list", b"{": "object"}.get(start, "")


def first_item(path: Path) -> Any:
    """The first entry of a list at the top, None where there is none; never an error."""
    if json_kind(path) != "list":
        return None
    try:
        with open(path, "rb") as file:  # so much of it that nearly every first entry is whole
            start = file.read(PEEK).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "ignore").lstrip()[1:].lstrip()
        return json.JSONDecoder().raw_decode(start)[0]
    except (OSError, ValueError, RecursionError):
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

"""JSON in and out: shallow, with finite numbers of a sane length; anything else is an error that says where."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from manylabel.error import DataError, ManylabelError
from manylabel.runtime.printable import UNPRINTABLE
from manylabel.storage.json_depth import check_depth
from manylabel.storage.plain_file import MB, read_bytes

LONGEST_INTEGER = 40  # characters: 128 bits, as the state of a random generator has
NAN = ("NaN", "Infinity", "-Infinity")  # what Python writes for them; no JSON


class _OddNumberError(ValueError):
    """A number that no computer can use."""


def read_json(
    path: Path, error: type[ManylabelError] = DataError, *, most: int = 64 * MB, advice: str = "", nan: bool = False
) -> Any:
    """The value of a JSON file. `advice`: what the user can do where it is damaged; `nan`: let NaN and infinity pass,
    which earlier versions wrote."""
    return parse_json(read_bytes(path, most, error), str(path), error, rows=True, advice=advice, nan=nan)


def read_object(
    path: Path, error: type[ManylabelError] = DataError, *, most: int = 64 * MB, advice: str = ""
) -> dict[str, Any]:
    """The object that a JSON file holds."""
    value = read_json(path, error, most=most, advice=advice)
    if not isinstance(value, dict):
        raise error(f"{path} must hold a JSON object{advice and '; '}{advice}")
    return value


def parse_json(
    data: bytes | str,
    where: str,
    error: type[ManylabelError] = DataError,
    *,
    rows: bool = False,
    advice: str = "export it again",
    nan: bool = False,
) -> Any:
    """The value of a JSON text; errors say `where` it stands and, with `rows`, in which of its rows."""
    then = f"; {advice}" if advice else ""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        check_depth(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
        constant = None if nan else _refuse
        return json.loads(text, parse_int=_integer, parse_float=None if nan else _finite, parse_constant=constant)
    except json.JSONDecodeError as reason:
        row = f", row {reason.lineno}" if rows else ""
        raise error(f"{where}{row}: cut off or no valid JSON ({reason.msg}){then}") from None
    except UnicodeDecodeError:
        raise error(f"{where}: not UTF-8 text{then}") from None
    except _OddNumberError as reason:
        row = f", row {text[: max(0, text.find(str(reason)))].count(chr(10)) + 1}" if rows else ""
        raise error(f"{where}{row}: no valid JSON ({reason!s:.40} is no number that can be used){then}") from None
    except (ValueError, RecursionError) as reason:
        raise error(f"{where}: no valid JSON ({str(reason).splitlines()[0]:.120}){then}") from None


def _refuse(constant: str) -> float:
    raise _OddNumberError(constant)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _OddNumberError(text)
    return value


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise _OddNumberError(text)
    return int(text)


def to_json(value: Any, indent: int | None = 1) -> str:
    """The one way in which we write and print JSON: letters as themselves, but escaped what a terminal would obey or UTF-8
    cannot hold, and never NaN, which is no JSON."""
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ManylabelError(f"{odd_number(value)} is not a finite number, so it cannot be written as JSON") from error
    return UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def odd_number(value: Any, where: str = "") -> str | None:
    """Where in a plain value the first number stands that is not finite."""
    if isinstance(value, float):
        return None if math.isfinite(value) else where or "the value"
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    found = (odd_number(one, f"{where}[{key}]" if isinstance(key, int) else f"{where}.{key}") for key, one in pairs)
    return next((place.removeprefix(".") for place in found if place), None)

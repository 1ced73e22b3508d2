"""Single values of a row: a list of label names, such a list written as text, and boxes."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from manylabel.data.record import Box, Thing
from manylabel.error import DataError

SIDE_BY_SIDE = re.compile(r"""(?<!\\)(['"])\s+(['"])""")  # ['a' 'b'] as numpy prints it; Python would read 'ab'

LARGEST = 1e9  # of a coordinate in pixels


def is_list_text(text: str) -> bool:
    text = text.strip()
    return text.startswith("[") and text.endswith("]")


def names_in_text(text: str, where: str) -> tuple[str, ...]:
    """The names of a list that was written out as JSON or as Python writes it."""
    text = text.strip()
    if not text:
        return ()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        if SIDE_BY_SIDE.search(text):
            raise DataError(f'{where}: {text[:60]!r} has no commas between the names; write ["a", "b"]') from None
        try:
            values = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise DataError(f'{where}: {text[:60]!r} is no list of names; write ["a", "b"]') from None
    return listed_names(values, where)


def listed_names(value: Any, where: str) -> tuple[str, ...]:
    """Names from a list, a single name, or nothing; whole numbers become names."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ()
    values = value if isinstance(value, (list, tuple)) else [value]
    numbers = [number for number in values if isinstance(number, int)]
    if len(numbers) > 2 and len(numbers) == len(values) and set(numbers) <= {0, 1}:
        raise DataError(
            f"{where}: {value!r:.60} looks like 0 and 1 for every label; write the names, or one field per label"
        )
    return tuple(name for each in values if (name := _name(each, where)))


def _name(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    raise DataError(f"{where}: {str(value)[:60]!r} is no label name; write a list of names")


def row_things(value: Any, where: str) -> tuple[Thing, ...]:
    """{'bbox': [[x, y, width, height], …], 'categories': [name, …]}, with iscrowd and difficult beside them or not."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: it must hold 'bbox' and 'categories', not {str(value)[:60]!r}")
    boxes = value.get("bbox") or []
    names = listed_names(next((value[key] for key in ("categories", "category") if value.get(key)), []), where)
    if not isinstance(boxes, list) or len(boxes) != len(names):
        raise DataError(f"{where}: 'bbox' and 'categories' must be lists of the same length")
    crowd, difficult = (_flags(value.get(key), len(boxes), f"{where}, {key}") for key in ("iscrowd", "difficult"))
    return tuple(
        Thing(name, corner_box(box, f"{where}, box {i}"), crowd=crowd[i - 1], difficult=difficult[i - 1])
        for i, (name, box) in enumerate(zip(names, boxes, strict=True), 1)
    )


def _flags(value: Any, count: int, where: str) -> list[bool]:
    if value is None:
        return [False] * count
    if not isinstance(value, list) or len(value) != count:
        raise DataError(f"{where}: it must have one entry for each box")
    return [bool(flag) for flag in value]


def corner_box(value: Any, where: str) -> Box:
    """left, top, right, bottom of x, y (left and top), width, height."""
    numbers = finite_numbers(value, 4, where)
    left, top, width, height = numbers
    if width <= 0 or height <= 0:
        raise DataError(f"{where}: a width of {width:g} and a height of {height:g}; both must be above 0")
    return left, top, left + width, top + height


def finite_numbers(value: Any, count: int, where: str) -> list[float]:
    """`count` plain numbers from a list, or an error."""
    given = value if isinstance(value, (list, tuple)) else []
    numbers = [float(n) for n in given if type(n) in (int, float) and abs(n) < LARGEST]  # NaN fails as well
    if len(numbers) != count or len(given) != count:
        raise DataError(f"{where}: {value!r:.60} is not {count} numbers")
    return numbers


def number_in(text: str | None, where: str) -> float:
    """The finite number that a text must be."""
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: {str(text)[:40]!r} is not a number; mend it")
    return value

"""Single values of a results or details file: of the right kind, or an error that says where it is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

from manylabel.error import DataError

# Anything else (an address, an SVG with scripts) would make the page load or run something.
THUMBNAIL = re.compile(r"data:image/(?:jpeg|png|webp|gif);base64,[A-Za-z0-9+/]+={0,2}")


def wrong(where: str, problem: str) -> DataError:
    return DataError(f"{where} {problem}; evaluate the model again to write it anew")


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(where, f"must be an object of keys and values, not {type(value).__name__}")
    return value


def items(value: Any, where: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise wrong(where, f"must be a list, not {type(value).__name__}")
    return list(value)


def need(values: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in values:
        raise wrong(where, f"lacks the key {key!r}")
    return values[key]


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise wrong(where, f"must be text, not {type(value).__name__}")
    return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be written to a file


def need_text(values: Mapping[str, Any], key: str, where: str) -> str:
    return text(need(values, key, where), f"{where}.{key}")


def need_number(values: Mapping[str, Any], key: str, where: str, high: float = math.inf) -> float | None:
    return number(need(values, key, where), f"{where}.{key}", high=high)


def number(value: Any, where: str, low: float = 0.0, high: float = math.inf) -> float | None:
    """A finite number within the limits; null and NaN are both 'undefined'."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise wrong(where, f"must be a number or null, not {value!r:.40}")
    try:
        real = float(value)
    except OverflowError:
        raise wrong(where, f"is {value!r:.40}…, which no number can be") from None
    if math.isnan(real):
        return None
    if not low <= real <= high * (1 + 1e-6):  # rounding may leave 1.0000001
        raise wrong(where, f"is {real:g}, which is not between {low:g} and {high:g}")
    return min(real, high)


def shares(value: Any, where: str) -> list[float | None]:
    """A list of numbers 0..1 or null; plain ones pass at once, for there can be millions."""
    return [
        item if type(item) is float and 0.0 <= item <= 1.0 else number(item, f"{where}[{i}]", high=1.0)
        for i, item in enumerate(items(value, where))
    ]


def picture(value: Any) -> str | None:
    """A small picture as a data address; None for anything else."""
    return value if isinstance(value, str) and THUMBNAIL.fullmatch(value) else None

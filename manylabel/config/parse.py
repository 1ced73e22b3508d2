"""Plain values to dataclasses and back: wrong keys and types are errors that say where."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from manylabel.config.option import Part
from manylabel.config.schema import Config
from manylabel.config.shorthand import fold
from manylabel.error import ConfigError
from manylabel.suggest import closest

C = TypeVar("C")
LARGEST = 2**63 - 1  # whole number
LARGEST_FLOAT = 1e38  # weights are 32 bits wide


def parse(cls: type[C], values: Mapping[str, Any], where: str = "") -> C:
    """A dataclass from plain values; wrong keys and types are errors that say where."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where or cls.__name__} takes settings of its own (a mapping), not {values!r:.100}")
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in known:
            raise ConfigError(f"there is no setting {path!r:.200}{closest(str(key), known)}")
        made[str(key)] = _convert(hints[str(key)], value, path)
    missing = [n for n, f in known.items() if n not in made and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise ConfigError(f"{where or cls.__name__} needs {', '.join(missing)}")
    return cls(**made)


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value` as the type `hint` asks for, or an error that names the field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Part:
        return _part(value, where)
    if is_dataclass(hint):
        return parse(hint, value, where)  # type: ignore[arg-type]
    if origin is Literal:
        return _choice(arguments, value, where)
    if origin in (Union, types.UnionType):
        if type(None) in arguments and (value is None or (value == "none" and str not in arguments)):
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, where)
    if origin is dict:  # things of one kind by names that the user chose
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} takes settings by name (a mapping), not {value!r:.100}")
        return {str(name): _convert(arguments[1], one, f"{where}.{name}") for name, one in value.items()}
    if origin is tuple:
        return tuple(
            _convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_items(arguments[0], value))
        )
    return value if hint in (Any, Mapping) else _scalar(hint, value, where)


def _choice(allowed: tuple[Any, ...], value: Any, where: str) -> Any:
    if isinstance(value, bool):  # YAML reads on, off, yes and no as booleans
        value = next((a for a in allowed if a in (("on", "yes") if value else ("off", "no"))), value)
    if value not in allowed:
        raise ConfigError(f"{where} cannot be {value!r:.100}{closest(str(value), allowed)}")
    return value


def _items(hint: Any, value: Any) -> list[Any]:
    """Of a list, of a text with commas, or of one value alone."""
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
    items = [item.strip() if isinstance(item, str) else item for item in items]
    if hint is int:  # 64,16 is one text, whose parts nobody has read as numbers yet
        return [int(item) if isinstance(item, str) and item.isdecimal() else item for item in items]
    return items


def _scalar(hint: type, value: Any, where: str) -> Any:
    """A number, a text, or whether something holds, which is no number here."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and (number or isinstance(value, str)):
        return _finite(value, where)
    if hint is int and isinstance(value, int) and abs(value) > LARGEST:
        raise ConfigError(f"{where} is too large a number: {value!r:.40}")
    if hint is str and number:
        return str(value)
    if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise ConfigError(f"{where} must be {hint.__name__}, not {value!r:.100}")


def _finite(value: float | str, where: str) -> float:
    try:  # YAML reads 1e-3 (no dot) as text
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"{where} must be a finite number, not {value!r:.100}")
    if abs(number) > LARGEST_FLOAT:
        raise ConfigError(f"{where} is too large a number: {value!r:.40}")
    return number


def _part(value: Any, where: str) -> Part:
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        return Part(value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return Part(value["name"], {k: v for k, v in value.items() if k != "name"})
    raise ConfigError(f"{where} must be a name, or a mapping with a 'name', not {value!r:.100}")


def plain(config: Any) -> dict[str, Any]:
    """The config as nested dicts of YAML values."""
    if isinstance(config, Part):
        return config.plain()
    if isinstance(config, Mapping):
        return {name: plain(one) if is_dataclass(one) else one for name, one in config.items()}
    return {
        f.name: plain(v)
        if is_dataclass(v := getattr(config, f.name)) or isinstance(v, Mapping)
        else list(v)
        if isinstance(v, tuple)
        else v
        for f in fields(config)
    }


def dump(config: Any) -> str:
    """As a file holds it."""
    return yaml.safe_dump(as_stored(config), sort_keys=False, allow_unicode=True)


def as_stored(config: Any) -> dict[str, Any]:
    """Plain values, those of a run's only task at the top."""
    return fold(config, plain(config)) if isinstance(config, Config) else plain(config)

"""Numbers that stand for classes → their names, as `datasets` describes its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manylabel.error import DataError

NOBODY_SAID = -1  # a class that `datasets` uses where labels are held back


def class_names(feature: Any) -> tuple[str, ...] | None:
    """The names of a ClassLabel, of a list of them, or of those among the objects of an image."""
    if isinstance(feature, list):
        return class_names(feature[0]) if len(feature) == 1 else None
    if not isinstance(feature, Mapping):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        return tuple(map(str, names)) if isinstance(names, list) else None
    if "feature" in feature and "_type" in feature:
        return class_names(feature["feature"])
    if "_type" not in feature:
        return next((names for key in ("categories", "category") if (names := class_names(feature.get(key)))), None)
    return None


def named(value: Any, names: tuple[str, ...], where: str) -> Any:
    """The same value with names for numbers, in lists and in the 'category' of objects, too; None where nobody said."""
    if isinstance(value, list):
        return [named(each, names, where) for each in value]
    if isinstance(value, Mapping):
        inside = ("categories", "category")
        return {key: named(each, names, where) if key in inside else each for key, each in value.items()}
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if value == NOBODY_SAID:
        return None
    if not 0 <= value < len(names):
        raise DataError(f"{where}: class {value}, but there are only {len(names)}, counted from 0; mend it")
    return names[value]


def columns_of_objects(value: Any) -> Any:
    """[{'bbox': a, 'category': b}, …] → {'bbox': [a, …], 'category': [b, …]}; anything else stays."""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        return {key: [each.get(key) for each in value] for key in value[0]}
    return value if value != [] else None

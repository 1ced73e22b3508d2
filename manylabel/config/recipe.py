"""Recipes (YAML files), sections and `--set` overrides, laid over each other: later ones win."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from manylabel.config.multitask import MultiTaskConfig
from manylabel.config.option import Part
from manylabel.config.parse import parse
from manylabel.config.schema import OWN_LOSS, Config
from manylabel.error import ConfigError
from manylabel.storage.yaml_text import parse_yaml, read_yaml
from manylabel.suggest import closest


def load_yaml(path: Path) -> dict[str, Any]:
    values = read_yaml(path, ConfigError)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold settings (key: value), not a {type(values).__name__}")
    return values


def recipe_folder() -> Path:
    """Where the recipes are: inside the installed package, or beside it in a source tree."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


def recipe_names() -> list[str]:
    return sorted(path.stem for path in recipe_folder().glob("*.yaml"))


def load_recipe(name: str) -> dict[str, Any]:
    """A recipe by name, or by the path of a YAML file."""
    if name.endswith((".yaml", ".yml")):
        return load_yaml(Path(name))
    path = recipe_folder() / f"{name}.yaml"
    if name not in recipe_names():
        raise ConfigError(f"there is no recipe {name!r}{closest(name, recipe_names())}")
    return load_yaml(path)


def override(values: dict[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """`values` with each 'a.b=c' applied. Another name for a part drops the old part's options, whatever the order."""
    pairs = [_setting(setting) for setting in settings]
    names_first = sorted(pairs, key=lambda pair: pair[0][-1] != "name")
    merged = _copy(values)
    for keys, value in names_first:
        nested: dict[str, Any] = {keys[-1]: value}
        for key in reversed(keys[:-1]):
            nested = {key: nested}
        merged = merge(merged, nested)
    return merged


def _setting(text: str) -> tuple[list[str], Any]:
    """(['a', 'b'], value) of 'a.b=value'; text for a text field, YAML for everything else."""
    key, equals, value = text.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {text!r} is not of the form section.key=value, e.g. --set train.epochs=20")
    if keys[0] == "text" and len(keys) == 2:  # all options there are text, and 'none' is the name of one
        return keys, value
    if _is_text(keys):
        said = keys == ["backbone", "weights"]  # there 'none' means random ones
        return keys, None if value in ("", "null", "none") and not said else value
    return keys, parse_yaml(value, f"--set {text!r:.200}", ConfigError)


SEVERAL = ("tasks", "vit", "experts", "selection")  # sections that only a recipe of several tasks has


def _is_text(keys: list[str]) -> bool:
    """Whether the field is text: there a delimiter like | or , must not be read as YAML."""
    hint: Any = MultiTaskConfig if keys[0] in SEVERAL else Config
    for key in keys:
        if get_origin(hint) is dict:  # a task by its name
            hint = get_args(hint)[1]
        else:
            hint = get_type_hints(hint).get(key) if is_dataclass(hint) and hint is not Part else None
    return hint is str or (get_origin(hint) in (Union, types.UnionType) and str in get_args(hint))


def _copy(values: dict[str, Any]) -> dict[str, Any]:
    return {k: _copy(v) if isinstance(v, dict) else v for k, v in values.items()}


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Config values with others laid on top, section by section; a part with another name replaces the old one whole."""
    merged = _copy(dict(base))
    defaults = Config()
    for key, value in over.items():
        default = getattr(defaults, key, None)
        if isinstance(default, Part):
            old, new = _named(merged.get(key, {})), _named(value)
            renamed = isinstance(new, dict) and "name" in new and new["name"] != old.get("name", default.name)
            merged[key] = new if renamed or not isinstance(new, dict) else {**old, **new}
        else:
            merged[key] = _laid_over(merged.get(key), value)
    return merged


def _laid_over(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _laid_over(old.get(key), value) for key, value in new.items()}}


def _named(part: Any) -> Any:
    """A part as a dict, however it was written."""
    return {"name": part} if isinstance(part, str) else part


def make_config(recipe: str | Mapping[str, Any] | None = None, settings: Iterable[str] = (), **sections: Any) -> Config:
    """A config from a recipe, then sections (dicts, or names of parts), then --set overrides; later ones win."""
    base = load_recipe(recipe) if isinstance(recipe, str) else recipe or {}
    values = override(merge(base, sections), settings)
    if (own := OWN_LOSS.get(str(values.get("task")))) is not None:
        loss = _named(values.get("loss", {}))
        values["loss"] = {"name": own, **loss} if isinstance(loss, dict) else loss
    defaults = Config()
    for key, value in values.items():  # 'head.dropout=0.1' alone means the default head
        default = getattr(defaults, key, None)
        if isinstance(default, Part) and isinstance(value, dict):
            value.setdefault("name", default.name)
    return parse(Config, values)

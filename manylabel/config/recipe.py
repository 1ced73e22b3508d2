"""Recipes (YAML files), sections and `--set` overrides, laid over each other: later ones win."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from manylabel.config.kind import defaults_of
from manylabel.config.migrate import refuse_old_names
from manylabel.config.option import Part
from manylabel.config.parse import parse
from manylabel.config.schema import ADAPT_PRESETS, LABELS, PRESET_K, Config, TaskConfig
from manylabel.config.shorthand import AT_THE_TOP, PARTS, default_name, shared_options, unfold
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


# --- overrides ----------------------------------------------------------------------------------------------------------


def override(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """`values` with each 'a.b=c' applied. Another name for a part drops the old part's options (of a head those that the
    new one does not have), whatever the order."""
    pairs = [_setting(setting) for setting in settings]
    names_first = sorted(pairs, key=lambda pair: pair[0][-1] != "name")
    merged = dict(values)
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
    of_task = keys[2:] if keys[0] == "tasks" else keys
    if of_task[:1] == ["text"] and len(of_task) == 2:  # all options there are text, and 'none' is the name of one
        return keys, value
    if _is_text(keys):
        said = keys == ["backbone", "weights"]  # there 'none' means random ones
        return keys, None if value in ("", "null", "none") and not said else value
    return keys, parse_yaml(value, f"--set {text!r:.200}", ConfigError)


def _is_text(keys: list[str]) -> bool:
    """Whether the field is text: there a delimiter like | or , must not be read as YAML."""
    hint: Any = TaskConfig if keys[0] in AT_THE_TOP else Config
    for key in keys:
        if get_origin(hint) is dict:  # a task by its name
            hint = get_args(hint)[1]
        else:
            hint = get_type_hints(hint).get(key) if is_dataclass(hint) and hint is not Part else None
    return hint is str or (get_origin(hint) in (Union, types.UnionType) and str in get_args(hint))


# --- one thing laid over another ----------------------------------------------------------------------------------------


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Config values with others laid on top, section by section; a part with another name replaces the old one, of a head
    but for the options that both have."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if key in PARTS:
            merged[key] = _part_over(key, old, value)
        elif key == "tasks" and isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = {**old, **{name: _task_over(old.get(name), one) for name, one in value.items()}}
        elif key == "backbone" and _renamed(old, value):  # options are of one kind of backbone
            merged[key] = _laid_over({k: v for k, v in dict(old or {}).items() if k != "options"}, value)
        else:
            merged[key] = _laid_over(old, value)
    return merged


def _renamed(old: Any, new: Any) -> bool:
    both = isinstance(old, Mapping) and isinstance(new, Mapping)
    return both and "name" in new and new["name"] != old.get("name", new["name"])


def _task_over(old: Any, new: Any) -> Any:
    return merge(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else new


def _part_over(part: str, old: Any, new: Any) -> Any:
    old, new = _named({} if old is None else old), _named(new)
    if not isinstance(new, Mapping) or not isinstance(old, Mapping):
        return new
    renamed = "name" in new and new["name"] != old.get("name", default_name(part))
    return {**(shared_options(part, new["name"], old) if renamed else old), **new}


def _laid_over(old: Any, new: Any) -> Any:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _laid_over(old.get(key), value) for key, value in new.items()}}


def _named(part: Any) -> Any:
    """A part as a dict, however it was written."""
    return {"name": part} if isinstance(part, str) else part


# --- a config -----------------------------------------------------------------------------------------------------------


def names_tasks(recipe: Mapping[str, Any], settings: Iterable[str] = (), sections: Mapping[str, Any] = {}) -> bool:
    """Whether tasks have names in any of these."""
    return "tasks" in recipe or "tasks" in sections or any(text.startswith("tasks.") for text in settings)


def make_config(recipe: str | Mapping[str, Any] | None = None, settings: Iterable[str] = (), **sections: Any) -> Config:
    """A config from a recipe, then sections (dicts, or names of parts), then --set overrides; later ones win.

    Where tasks have names, `data` is for those that name none.
    """
    base = load_recipe(recipe) if isinstance(recipe, str) else recipe or {}
    settings = list(settings)
    asked = override({}, settings)
    for values in (base, sections, asked):
        refuse_old_names(values)
    if not names_tasks(base, settings, sections):
        values = override(merge(base, sections), settings)
        return config_of(_with_presets(values, asked))
    data = sections.pop("data", None)
    if "tasks" not in base and (any(key in base for key in AT_THE_TOP) or "tasks" not in sections):
        base = unfold(base)
    _check_tasks(base.get("tasks"), sections.get("tasks"), asked.get("tasks"))
    values = _with_presets(override(merge(base, sections), settings), asked)
    return config_of(_with_data(_without_left_out(values), data))


def left_out_of_heads(recipe: str | Mapping[str, Any] | None, config: Config) -> list[str]:
    """What another head than the recipe's does not take over from it, in sentences."""
    tasks = unfold(load_recipe(recipe) if isinstance(recipe, str) else recipe or {}).get("tasks")
    found = []
    for name, task in config.tasks.items():
        of_recipe = tasks.get(name) if isinstance(tasks, Mapping) else None
        old = _named(of_recipe.get("head", {})) if isinstance(of_recipe, Mapping) else None
        if not isinstance(of_recipe, Mapping) or not isinstance(old, Mapping):
            continue
        before = old.get("name", defaults_of(str(of_recipe.get("kind", TaskConfig().kind)), "kind").head)
        kept = shared_options("head", task.head.name, old)
        gone = [f"{key}={value}" for key, value in old.items() if key not in kept and key != "name"]
        if gone and before != task.head.name:
            also = f"; {', '.join(kept)} stay as they are there" if kept else ""
            found.append(
                f"the recipe is for {before}: {task.head.name} has no {', '.join(gone)}, so that is left out{also}"
            )
    return found


def config_of(values: Mapping[str, Any]) -> Config:
    """From plain values, as a file holds them."""
    known = [*AT_THE_TOP, *(field.name for field in fields(Config))]
    for key in values:
        if key not in known:
            raise ConfigError(f"there is no setting {key!r:.200}{closest(str(key), known)}")
    at_the_top, values = "tasks" not in values, unfold(values)
    tasks = values["tasks"]
    if not isinstance(tasks, Mapping) or not tasks:
        raise ConfigError("tasks must name one task or more, each with a kind and its data")
    values["tasks"] = {name: _whole_task(t, "" if at_the_top else f"tasks.{name}.") for name, t in tasks.items()}
    for part in ("optimiser", "schedule"):
        if isinstance(values.get(part), Mapping):  # 'optimiser.lr=0.1' alone means the default optimiser
            values[part] = {"name": default_name(part), **values[part]}
    try:
        return parse(Config, values)
    except ConfigError as error:
        if at_the_top:  # in the words in which it was said
            error.args = (str(error).replace(f"tasks.{LABELS}.", ""),)
        raise


def _whole_task(task: Any, where: str) -> dict[str, Any]:
    """With the names of its parts, which depend on its kind, and its data as a mapping."""
    if not isinstance(task, Mapping):
        raise ConfigError(f"{where.rstrip('.')} takes settings of its own (a mapping), not {task!r:.100}")
    whole = dict(task)
    if isinstance(whole.get("data"), str):  # data: photos/ is short for data: {path: photos/}
        whole["data"] = {"path": whole["data"]}
    if not isinstance(whole.get("data", {}), Mapping):
        raise ConfigError(f"{where}data takes a path, or settings of its own (a mapping), not {whole['data']!r:.100}")
    own = defaults_of(str(whole.get("kind", TaskConfig().kind)), f"{where}kind")
    usual = {"neck": default_name("neck"), "text": default_name("text"), "head": own.head, "loss": own.loss}
    for part, name in usual.items():
        given = _named(whole.get(part, {}))
        whole[part] = {"name": name, **given} if isinstance(given, Mapping) else given
    return whole


def _with_presets(values: dict[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is said beside a preset goes on top of it; a preset that --set asks for goes on top of the recipe."""
    for section in (values, asked):
        adapt = section.get("train", {}).get("adapt") if isinstance(section.get("train"), Mapping) else None
        if not isinstance(adapt, Mapping) or str(adapt.get("preset")) not in ADAPT_PRESETS:
            continue
        name = str(adapt["preset"])
        own = {**values["train"].get("adapt", {}), **ADAPT_PRESETS[name], **adapt}
        values = {**values, "train": {**values["train"], "adapt": own}}
        backbone = values.get("backbone", {})
        if isinstance(backbone, Mapping):
            backbone = _laid_over(dict(backbone), {"options": {"k": PRESET_K[name]}})
            values["backbone"] = _laid_over(backbone, section.get("backbone", {}))
    return values


def _check_tasks(named: Any, given: Any, asked: Any) -> None:
    """A task that only --set names is a slip, unless it says of what kind it is."""
    known = {**(named if isinstance(named, Mapping) else {}), **(given if isinstance(given, Mapping) else {})}
    for name, task in asked.items() if isinstance(asked, Mapping) else ():
        if name not in known and not (isinstance(task, Mapping) and "kind" in task):
            raise ConfigError(
                f"--set tasks.{name}: there is no such task (a new one needs a kind){closest(str(name), known)}"
            )


def _without_left_out(values: dict[str, Any]) -> dict[str, Any]:
    """--set tasks.labels=none leaves a task of the recipe out."""
    tasks, train = values.get("tasks"), values.get("train")
    if not isinstance(tasks, Mapping):
        return values
    left_out = [name for name, task in tasks.items() if task in (None, "none")]
    values = {**values, "tasks": {name: task for name, task in tasks.items() if name not in left_out}}
    if isinstance(train, Mapping) and train.get("first") in (*left_out, "none"):
        values["train"] = {**train, "first": None, "first_steps": 0, "first_optimiser": {}, "first_schedule": {}}
    return values


def _with_data(values: dict[str, Any], data: Any) -> dict[str, Any]:
    """`data` for tasks that name none; an error where none takes it."""
    tasks = values.get("tasks")
    if data is None or not isinstance(tasks, Mapping):
        return values
    data, taken = {"path": data} if isinstance(data, str) else data, False
    found = {}
    for name, task in tasks.items():
        own = task.get("data") if isinstance(task, Mapping) else None
        names_none = own is None or (isinstance(own, Mapping) and not own.get("path"))
        taken = taken or not isinstance(task, Mapping) or not isinstance(own, (Mapping, str, type(None)))  # said later
        if isinstance(task, Mapping) and names_none:
            taken, task = True, {**task, "data": {**data, **(own or {})}}
        found[name] = task
    if not taken:
        raise ConfigError(
            f"every task of this recipe names its own data; leave {data.get('path')} out, or set it for a task: "
            f"--set tasks.{next(iter(tasks), 'NAME')}.data.path=…"
        )
    return {**values, "tasks": found}

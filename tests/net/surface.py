"""What users and their scripts hold on to, as plain data: public names, commands, settings, recipes."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_type_hints

import typer
import yaml
from command import manylabel

import manylabel as ml
from manylabel.cli import app
from manylabel.config import as_stored, load_recipe, make_config, recipe_names
from manylabel.run import resolve

FOLDER = Path(__file__).parent / "frozen"
BEYOND = (  # what the documentation names of its modules
    "data.scenes.draw_scene",
    "engine.export.export_head",
    "engine.export.export_onnx",
    "explain.explain",
    "heads.WithHead",
    "heads.attach",
    "heads.names",
    "inference.images.find_images",
)


def names() -> dict[str, Any]:
    """Every public name with its signature, fields and public methods."""
    return {name: _facts(resolve_name(f"manylabel.{name}")) for name in (*sorted(ml.__all__), *BEYOND)}


def _facts(thing: Any) -> dict[str, Any]:
    if not inspect.isclass(thing):
        return {"call": _signature(thing)}
    facts: dict[str, Any] = {"call": _signature(thing)}
    if issubclass(thing, BaseException):
        facts["is"] = [base.__name__ for base in thing.__mro__[1:-1]]
    if dataclasses.is_dataclass(thing):
        facts["fields"] = [field.name for field in dataclasses.fields(thing)]
    members = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
    facts["has"] = {name: _member(value) for name, value in sorted(members.items()) if _is_own(value)}
    return facts


def _is_own(value: Any) -> bool:
    return isinstance(value, (property, classmethod, staticmethod)) or inspect.isfunction(value)


def _member(value: Any) -> str:
    if isinstance(value, property):
        return "property"
    return _signature(getattr(value, "__func__", value))


def _signature(thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except ValueError:  # exceptions take what they are given
        return "(…)"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return re.sub(r"<function .*? at 0x[0-9a-f]+>", "function", str(inspect.Signature(bare)))


def commands() -> dict[str, Any]:
    """Every command with what it takes; not the wording of its help."""
    return dict(_commands(typer.main.get_command(app), ""))


def _commands(command: Any, path: str) -> Iterator[tuple[str, list[str]]]:
    kinds = get_type_hints(inspect.unwrap(command.callback)) if command.callback else {}
    yield path or "manylabel", [_parameter(each, kinds) for each in command.params if each.name != "help"]
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(inner, f"{path} {name}".strip())


def _parameter(each: Any, kinds: dict[str, Any]) -> str:
    """As a line: --out, Path, default=runs/latest. Kinds are those of our own functions: typer's change names."""
    kind = kinds[each.name]
    said = [" ".join([*each.opts, *each.secondary_opts]), kind.__name__ if inspect.isclass(kind) else str(kind)]
    said += ["required"] if each.required else [f"default={each.default}"]
    said += ["again"] if getattr(each, "multiple", False) or each.nargs != 1 else []
    for side in ("min", "max"):
        value = getattr(each, side, getattr(getattr(each, "type", None), side, None))
        said += [] if value is None else [f"{side}={value}"]
    return ", ".join(said).replace("pathlib.", "")


def settings() -> dict[str, Any]:
    """Every setting with its default, as `manylabel settings` lists them, and the options of every part that has a name."""
    found: dict[str, Any] = {"settings": _listed(manylabel("settings").stdout)}
    for listing in ("heads", "losses", "detectors", "texts"):
        found[listing] = _listed(manylabel(listing).stdout)
    return found


def _listed(text: str) -> dict[str, dict[str, str]]:
    """Lines `key = default  meaning` below a title that is not indented."""
    found: dict[str, dict[str, str]] = {}
    title = ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            title = line.split(":")[0]
        elif row := re.match(r"\s+([\w.]+) = (.*?)(\s{2,}|$)", line):
            found.setdefault(title, {})[row[1]] = row[2]
    return found


def recipes() -> dict[str, Any]:
    """What each recipe means once every setting is written out: those that are not the defaults above."""
    return {name: _resolved(name) for name in recipe_names()}


def _resolved(name: str) -> dict[str, Any]:
    values = load_recipe(name)
    if "tasks" not in values:
        return _other_than(_flat(as_stored(resolve(make_config(name)))), _flat(as_stored(make_config(None))))
    open_to_data = any("data" not in task for task in values["tasks"].values())
    return _flat(as_stored(resolve(make_config(values, data={"path": "scenes"} if open_to_data else None))))


def _flat(value: Any, before: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {before: value}
    return {key: one for name, each in value.items() for key, one in _flat(each, f"{before}.{name}".strip(".")).items()}


def _other_than(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in defaults or defaults[key] != value}


SURFACES: dict[str, Callable[[], dict[str, Any]]] = {
    "names": names,
    "commands": commands,
    "settings": settings,
    "recipes": recipes,
}


def written(name: str) -> str:
    """The text of a frozen file."""
    return yaml.safe_dump(_plain(SURFACES[name]()), sort_keys=False, allow_unicode=True, width=200)


def _plain(value: Any) -> Any:
    """Without tuples and the like, which YAML would mark."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def freeze() -> None:
    for name in SURFACES:
        path = FOLDER / f"{name}.yaml"
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        path.parent.mkdir(exist_ok=True)
        path.write_text(written(name), encoding="utf-8")
        print(f"{path.name}: {'as it was' if path.read_text(encoding='utf-8') == before else 'written anew'}")

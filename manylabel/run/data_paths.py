"""The paths in the settings of a run: absolute in its own folder, bare names in what leaves it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import timm

from manylabel.config import BackboneConfig, Config, DataConfig, Part, ZeroShotConfig
from manylabel.zero_shot import is_file_name

C = TypeVar("C", Config, DataConfig)
Change = Callable[[str], str]

NO_PATHS = ("", "scenes", "auto", "pip", "hub", "none")  # words that stand where a path may stand
PATHS: dict[type, tuple[str, ...]] = {  # settings that are paths, whatever they look like
    DataConfig: ("path", "images", "labels", "split_file"),
}
OF_PARTS = ("path", "labels", "file", "folder", "weights")  # options of parts that are paths


def with_absolute_paths(config: C) -> C:
    """All sections with paths that hold from any folder."""
    changed: C = _each_path(config, os.path.abspath, False)
    return changed


def without_paths(config: C) -> C:
    """All sections with names only, for a bundle says nothing about the machine it was made on."""
    changed: C = _each_path(config, _name, True)
    return changed


def _each_path(value: Any, change: Change, hide: bool) -> Any:
    """The same section with its paths changed; `hide`: with what only looks like a path as well."""
    if isinstance(value, Part):
        return Part(value.name, _in_options(value.options, change, hide))
    if isinstance(value, Mapping):
        return {key: _each_path(one, change, hide) for key, one in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{field.name: _in_field(value, field.name, change, hide) for field in fields(value)})


def _in_field(section: Any, name: str, change: Change, hide: bool) -> Any:
    value = getattr(section, name)
    if isinstance(section, BackboneConfig) and name == "options":
        return {key: change(one) if _is_weights(key, one) else one for key, one in value.items()}
    if not isinstance(value, str):
        return _each_path(value, change, hide)
    known = name in PATHS.get(type(section), ()) and value not in NO_PATHS
    return change(value) if known or _is_file(section, name, value) else value


def _is_file(section: Any, name: str, value: str) -> bool:
    """Of settings that may be something else as well: names of labels, or of a timm model."""
    if isinstance(section, ZeroShotConfig):
        return name == "unseen" and is_file_name(value)
    return isinstance(section, BackboneConfig) and _is_weights(name, value)


def _is_weights(name: str, value: Any) -> bool:
    """A file of weights, and not a word or the name of a model of timm."""
    text = name == "weights" and isinstance(value, str) and value not in NO_PATHS
    return text and not timm.is_model(value.partition(".")[0])


def _in_options(value: Any, change: Change, hide: bool, key: str = "") -> Any:
    """Options of a part: ours, and those of a part that a user registered, of which nobody knows what they are."""
    if isinstance(value, Mapping):
        return {name: _in_options(one, change, hide, str(name)) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_in_options(one, change, hide, key) for one in value)
    if not isinstance(value, str) or value in NO_PATHS:
        return value
    looks_so = hide and (os.path.isabs(value) or value.startswith(("~", "./", "../", ".\\", "..\\")))
    return change(value) if key in OF_PARTS or looks_so else value


def _name(path: str) -> str:
    """Its last part, whatever system wrote it."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]

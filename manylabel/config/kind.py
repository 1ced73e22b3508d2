"""What a kind of task has where nobody says otherwise; the kinds themselves are in manylabel/task/."""

from __future__ import annotations

from dataclasses import dataclass

from manylabel.error import ConfigError
from manylabel.suggest import closest


@dataclass(frozen=True)
class KindDefaults:
    """Names of parts."""

    head: str = "linear"
    loss: str = "bce"


KIND_DEFAULTS: dict[str, KindDefaults] = {}  # by the name of the kind; manylabel.task fills it


def register_kind(name: str, defaults: KindDefaults) -> None:
    KIND_DEFAULTS[name] = defaults


def defaults_of(kind: str, where: str) -> KindDefaults:
    """`where`: the setting that names the kind."""
    if KIND_DEFAULTS and kind not in KIND_DEFAULTS:
        raise ConfigError(f"{where} cannot be {kind!r:.100}{closest(kind, KIND_DEFAULTS)}")
    return KIND_DEFAULTS.get(kind, KindDefaults())

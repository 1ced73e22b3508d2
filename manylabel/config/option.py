"""The two words that settings are written with: a documented field, and a part that can be exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any


def option(default: Any, text: str) -> Any:
    """A dataclass field with its documentation."""
    if isinstance(default, (list, dict, set)) or is_dataclass(default) or isinstance(default, Part):
        return field(default_factory=lambda: default, metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Part:
    """A registry name with its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, **self.options}

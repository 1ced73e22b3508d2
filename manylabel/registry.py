"""Names to builders. A duplicate name is an error; an unknown one is an error that names the closest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from manylabel.config import Part, note_options, parse, plain
from manylabel.error import ConfigError
from manylabel.suggest import closest

T = TypeVar("T")


class Registry:
    """Classes of one kind (heads, losses, …), each with an `Options` dataclass that documents its settings."""

    def __init__(self, kind: str, section: str | None = None) -> None:
        """`section`: of the settings, where it has another name than the kind."""
        self.kind, self.section = kind, section or kind
        self._classes: dict[str, type] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        def keep(cls: type[T]) -> type[T]:
            if name in self._classes:
                both = " and ".join(f"{one.__module__}.{one.__qualname__}" for one in (self._classes[name], cls))
                raise ConfigError(f"two {self.kind}s are called {name!r}: {both}")
            self._classes[name] = cls
            options = getattr(cls, "Options", None)
            if options is not None:
                note_options(self.section, name, options)
            return cls

        return keep

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def names(self) -> list[str]:
        return sorted(self._classes)

    def get(self, name: str) -> Any:
        if name not in self._classes:
            raise ConfigError(
                f"there is no {self.kind} {name!r:.100}{closest(name, self._classes)} (one of your own is there once the "
                "module that registers it is imported)"
            )
        return self._classes[name]

    def options(self, part: Part | str) -> Any:
        """The part's options as the class's own dataclass: unknown keys and wrong types are errors."""
        part = Part(part) if isinstance(part, str) else part
        return parse(self.get(part.name).Options, part.options, where=self.section)

    def resolve(self, part: Part | str) -> Part:
        """The same part with every option written out."""
        part = Part(part) if isinstance(part, str) else part
        return Part(part.name, plain(self.options(part)))

    def build(self, part: Part | str, **context: Any) -> Any:
        """The object the part names, from its options and what its kind is given (see the contracts)."""
        cls, options = self.get(part if isinstance(part, str) else part.name), self.options(part)
        variant = getattr(cls, "variant", None)  # a name may stand for several classes, by its options
        return (cls if variant is None else variant(options))(options, **context)

    def summary(self) -> Mapping[str, str]:
        """name → first line of the class's docstring, for listings."""
        return {name: (self._classes[name].__doc__ or "").strip().splitlines()[0] for name in self.names()}

"""What is known about labels beside their names: parents, synonyms, and a description in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from manylabel.error import DataError
from manylabel.labels import label_key
from manylabel.suggest import closest


@dataclass(frozen=True)
class LabelFacts:
    """One label: what it is a kind of, what else it is called, and what it looks like."""

    parents: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class Hierarchy:
    """A closed list of labels with their facts.

    A present label makes its ancestors present; an absent one makes its descendants absent.
    """

    facts: Mapping[str, LabelFacts]
    where: str = "the label file"  # for messages
    _names: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, facts in self.facts.items():
            for spelled in (name, *facts.synonyms):
                other = self._names.setdefault(label_key(spelled), name)
                if other != name:
                    raise DataError(
                        f"{self.where}: {spelled!r} stands for {other!r} and for {name!r}; keep one of them"
                    )
        for name, facts in self.facts.items():
            for parent in facts.parents:
                if label_key(parent) not in self._names:
                    raise DataError(
                        f"{self.where}: {name!r} has the parent {parent!r}, which is no label there"
                        f"{closest(parent, self.facts)}; add it"
                    )
        for name in self.facts:
            self._refuse_circle(name)

    def _refuse_circle(self, start: str) -> None:
        seen, waiting = set(), list(self.parents(start))
        while waiting:
            name = waiting.pop()
            if name == start:
                raise DataError(f"{self.where}: {start!r} is an ancestor of itself; delete one of the parents")
            if name not in seen:
                seen.add(name)
                waiting += self.parents(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.facts)

    def name(self, spelled: str) -> str | None:
        """The label that this name or synonym stands for."""
        return self._names.get(label_key(spelled))

    def parents(self, name: str) -> list[str]:
        return [self._names[label_key(parent)] for parent in self.facts[name].parents]

    @cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}

        def of(name: str) -> frozenset[str]:
            if name not in found:
                above = self.parents(name)
                found[name] = frozenset(above).union(*(of(parent) for parent in above))
            return found[name]

        for name in sorted(self.facts, key=self.level):  # parents first, so that no call goes deep
            of(name)
        return found

    @cached_property
    def _descendants(self) -> dict[str, frozenset[str]]:
        below: dict[str, set[str]] = {name: set() for name in self.facts}
        for name, above in self._ancestors.items():
            for ancestor in above:
                below[ancestor].add(name)
        return {name: frozenset(found) for name, found in below.items()}

    def ancestors(self, names: Iterable[str]) -> set[str]:
        return set().union(*(self._ancestors[name] for name in names))

    def descendants(self, names: Iterable[str]) -> set[str]:
        return set().union(*(self._descendants[name] for name in names))

    @cached_property
    def _levels(self) -> dict[str, int]:
        levels: dict[str, int] = {}
        for start in self.facts:  # depth first without recursion: a chain may be thousands long
            path = [start]
            while path:
                waiting = [parent for parent in self.parents(path[-1]) if parent not in levels]
                if waiting:
                    path.append(waiting[0])
                else:
                    name = path.pop()
                    levels[name] = 1 + max((levels[parent] for parent in self.parents(name)), default=-1)
        return levels

    def level(self, name: str) -> int:
        """0 for a label without parents, otherwise one more than its deepest parent."""
        return self._levels[name]

    def is_leaf(self, name: str) -> bool:
        return not self._descendants[name]

    def description(self, name: str) -> str:
        return self.facts[name].description

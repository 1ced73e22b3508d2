"""What is known about labels beside their names: parents, synonyms, and a description in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from manylabel.error import DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, label_key
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
        self._levels  # noqa: B018 (finds circles)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.facts)

    def name(self, spelled: str) -> str | None:
        """The label that this name or synonym stands for."""
        return self._names.get(label_key(spelled))

    def parents(self, name: str) -> list[str]:
        return [self._names[label_key(parent)] for parent in self.facts[name].parents]

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {name: [] for name in self.facts}
        for name in self.facts:
            for parent in self.parents(name):
                below[parent].append(name)
        return below

    def ancestors(self, names: Iterable[str]) -> set[str]:
        return _reached(names, self.parents)

    def descendants(self, names: Iterable[str]) -> set[str]:
        return _reached(names, self._children.__getitem__)

    @cached_property
    def _levels(self) -> dict[str, int]:
        levels: dict[str, int] = {}
        for start in self.facts:  # depth first without recursion: a chain may be thousands long
            path = [start]
            while path:
                waiting = [parent for parent in self.parents(path[-1]) if parent not in levels]
                if not waiting:
                    name = path.pop()
                    levels[name] = 1 + max((levels[parent] for parent in self.parents(name)), default=-1)
                elif len(path) > len(self.facts):  # longer than there are labels: one of them came again
                    raise DataError(f"{self.where}: {path[-1]!r} is an ancestor of itself; delete one of the parents")
                else:
                    path.append(waiting[0])
        return levels

    def level(self, name: str) -> int:
        """0 for a label without parents, otherwise one more than its deepest parent."""
        return self._levels[name]

    def imply(self, matrix: np.ndarray, labels: LabelSpace) -> np.ndarray:
        """A tri-state matrix [n, L] with what it implies: ancestors of the present, descendants of the absent."""
        matrix = matrix.copy()
        order = sorted(
            (i for i, name in enumerate(labels) if name in self.facts), key=lambda i: self.level(labels.names[i])
        )
        pairs = [(i, labels.index(p)) for i in order for p in self.parents(labels.names[i]) if p in labels]
        for child, parent in reversed(pairs):  # from the leaves upwards
            matrix[matrix[:, child] == PRESENT, parent] = PRESENT
        for child, parent in pairs:
            matrix[(matrix[:, parent] == ABSENT) & (matrix[:, child] == UNKNOWN), child] = ABSENT
        return matrix


def _reached(names: Iterable[str], step: Callable[[str], list[str]]) -> set[str]:
    """Everything that steps from these names lead to."""
    found: set[str] = set()
    waiting = [next_ for name in names for next_ in step(name)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += step(name)
    return found

"""One thing that a hostile or unlucky day brings, with what must hold of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostile.box import Box


@dataclass(frozen=True)
class Case:
    """`work` prepares a box, runs commands in it, and raises Fate where it did not survive."""

    category: str
    name: str
    work: Callable[[Box], None]

    @property
    def title(self) -> str:
        return f"{self.category}/{self.name}"

    def dice(self, seed: int) -> random.Random:
        """The same for this case, whichever others are tried."""
        return random.Random(f"{seed}/{self.title}")


class Collection:
    """The cases of one category, as they are written down."""

    def __init__(self, category: str) -> None:
        self.category = category
        self.cases: list[Case] = []

    def add(self, name: str, work: Callable[[Box], None]) -> None:
        assert all(case.name != name for case in self.cases), name
        self.cases.append(Case(self.category, name, work))

    def case(self, name: str) -> Callable[[Callable[[Box], None]], Callable[[Box], None]]:
        def keep(work: Callable[[Box], None]) -> Callable[[Box], None]:
            self.add(name, work)
            return work

        return keep

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

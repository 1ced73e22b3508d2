"""Random numbers that are the same in every process, on every platform and in every order of calls.

Only `random()` of a generator seeded with text is used: Python promises that this sequence never changes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A stream of random choices named by its key; another key gives an unrelated stream."""

    def __init__(self, *key: int | str) -> None:
        self.roll = random.Random("/".join(map(str, key))).random  # in [0, 1)

    def chance(self, probability: float) -> bool:
        return self.roll() < probability

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self.roll()

    def log_uniform(self, low: float, high: float) -> float:
        return low * math.exp(math.log(high / low) * self.roll())

    def count(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int((high - low + 1) * self.roll())

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(len(choices) * self.roll())]

    def weighted(self, weights: Mapping[str, float]) -> str:
        """A key, with the probability of its weight; the weights add up to 1."""
        rest = self.roll()
        for name, weight in weights.items():
            rest -= weight
            if rest < 0:
                return name
        return name

"""What a model said of images, as arrays on the CPU: enough to evaluate and decide without the model. No torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Evidence(ABC):
    """What a model said of some rows of a table; it can be gathered over processes."""

    rows: np.ndarray  # [n]

    @classmethod
    @abstractmethod
    def joined(cls, parts: Sequence[Any]) -> Any:
        """That of several batches as one, in the order of the rows."""

    @property
    def finite(self) -> bool:
        """Whether there are only numbers in it."""
        return True


@dataclass(frozen=True, eq=False)
class Scores(Evidence):
    """Of every image and label, between 0 and 1."""

    scores: np.ndarray  # [n, N] float32

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
        order = np.argsort(rows, kind="stable")
        scores = np.concatenate([part.scores for part in parts]) if parts else np.empty((0, 0), np.float32)
        return Scores(rows[order], scores[order])

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.scores).all())


EvidenceT = TypeVar("EvidenceT", bound=Evidence)


def together(parts: Sequence[EvidenceT]) -> EvidenceT:
    """Of one kind, at least one."""
    joined: EvidenceT = type(parts[0]).joined(parts)
    return joined

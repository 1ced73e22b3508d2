"""What a judged task knows, from which its metrics are computed; what several of them need is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from manylabel.labels import without
from manylabel.metric.average_precision import average_precisions

if TYPE_CHECKING:
    from manylabel.metric.detection import DetectionAP, ImageFound, ImageTruth

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Once:
    """Keeps what was computed."""

    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, measure: Callable[[Any], T]) -> T:
        """`measure` of this, computed when it is asked for first."""
        if measure not in self.kept:
            self.kept[measure] = measure(self)
        found: T = self.kept[measure]
        return found


@dataclass(frozen=True, eq=False)
class Judged(_Once):
    """Images with their scores and labels: any number of them, or one each."""

    scores: np.ndarray  # [n, N] between 0 and 1
    targets: np.ndarray  # [n, N] PRESENT, ABSENT or UNKNOWN
    names: Sequence[str] = ()  # of the N labels
    decisions: np.ndarray | None = None  # [n, N] bool: which labels are said to be there; None = nobody decided
    never: np.ndarray | None = None  # [N] bool: labels without a training image, which count in no mean
    unseen: np.ndarray | None = None  # [N] bool: labels that are kept from training; None = there are none
    vectors: np.ndarray | None = None  # [N, d] of the labels' texts
    parents: Sequence[tuple[int, int]] | None = None  # (label, its parent); None = a plain list of labels

    @cached_property
    def counted(self) -> np.ndarray:
        """The targets of all labels that count in means over labels or decisions. [n, N]"""
        return self.targets if self.never is None else without(self.targets, self.never)

    @property
    def ap(self) -> np.ndarray:
        """Average precision, 0 to 1, of each label that counts; NaN where it has none. [N]"""
        return self._counting(self.every_ap["none"])

    @property
    def ap_interpolated(self) -> np.ndarray:
        return self._counting(self.every_ap["voc"])

    @cached_property
    def every_ap(self) -> dict[str, np.ndarray]:
        """Of every label, also of what was never trained: {"none": [N], "voc": [N]}."""
        return average_precisions(self.scores, self.targets)

    def part(self, columns: np.ndarray) -> Judged:
        """As if there were no other labels."""
        return replace(
            self,
            scores=self.scores[:, columns],
            targets=self.targets[:, columns],
            names=[self.names[i] for i in columns] if self.names else (),
            decisions=None if self.decisions is None else self.decisions[:, columns],
            never=None if self.never is None else self.never[columns],
            unseen=None,
            vectors=None,
            parents=None,
        )

    def _counting(self, values: np.ndarray) -> np.ndarray:
        return values if self.never is None else np.where(self.never, np.nan, values)


@dataclass(frozen=True, eq=False)
class JudgedObjects(_Once):
    """Images with the objects in them and those that were found; masks where they were asked for."""

    boxes: DetectionAP
    masks: DetectionAP | None = None
    truth: Sequence[ImageTruth] = ()
    found: Sequence[ImageFound] = ()
    names: Sequence[str] = ()  # of the labels

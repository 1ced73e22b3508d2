"""What is said of an image: every label with its score, or why there is no answer. NumPy only: no torch is needed for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from manylabel.core.decision import decide
from manylabel.error import DecodeError


@dataclass(frozen=True)
class LabelScore:
    """One label of one image."""

    label: str
    score: float
    threshold: float
    above: bool


class Unread(tuple[Any, ...]):
    """What was found in an image that could not be read: not nothing. Who looks into it without asking for `error` first
    gets that error, for an empty answer would be taken for 'nothing is there'."""

    def __new__(cls, reason: str) -> Unread:
        unread = super().__new__(cls)
        unread.reason = reason  # type: ignore[attr-defined]
        return unread

    def __getnewargs__(self) -> tuple[str]:
        return (self.reason,)  # type: ignore[attr-defined]

    def _refuse(self, *_: object) -> NoReturn:
        raise DecodeError(f"{self.reason} (ask for .error first)")  # type: ignore[attr-defined]

    __iter__ = __len__ = __getitem__ = __contains__ = __reversed__ = _refuse  # type: ignore[assignment]


@dataclass(frozen=True)
class Prediction:
    """All labels of one image, highest score first; or in `error` why it could not be read: `labels` and `present` then
    raise a DecodeError when they are looked into."""

    image: str
    labels: tuple[LabelScore, ...] = ()
    error: str | None = None

    def __post_init__(self) -> None:
        if self.error is not None:
            object.__setattr__(self, "labels", Unread(f"{self.image}: {self.error}"))

    @property
    def present(self) -> list[str]:
        """The labels above their thresholds."""
        return [entry.label for entry in self.labels if entry.above]

    def plain(self, top: int | None = None) -> dict[str, Any]:
        """For JSON."""
        if self.error is not None:
            return {"image": self.image, "error": self.error}
        return {"image": self.image, "labels": [vars(entry) for entry in self.labels[:top]]}


def predictions_of(
    images: Sequence[str], scores: np.ndarray, labels: Sequence[str], thresholds: np.ndarray, single: bool = False
) -> Iterator[Prediction]:
    """Of a batch's scores [B, N]; `single`: an image's one label is the one with the highest."""
    for image, of_image, above in zip(images, scores, decide(scores, thresholds, single), strict=True):
        yield prediction_of(image, of_image, labels, thresholds, above)


def prediction_of(
    image: str, scores: np.ndarray, labels: Sequence[str], thresholds: np.ndarray, above: np.ndarray
) -> Prediction:
    """Of one image's scores [N], and what was decided [N]."""
    return Prediction(
        image,
        tuple(
            LabelScore(labels[i], float(scores[i]), float(thresholds[i]), bool(above[i]))
            for i in np.argsort(-scores, kind="stable")
        ),
    )

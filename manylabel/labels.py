"""Labels: their names in order, and the tri-state matrix that says which image has which.

Every entry of a label matrix is PRESENT, ABSENT or UNKNOWN. Unknown entries never count: not in a loss,
not in a metric, not in a statistic.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manylabel.error import DataError
from manylabel.suggest import closest

PRESENT = 1
ABSENT = 0
UNKNOWN = -1

LONGEST_NAME = 1000  # a longer "name" is a broken delimiter, not a label


def label_key(name: str) -> str:
    """What two names must not share: case and Unicode form do not make a different label."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


@dataclass(frozen=True)
class LabelSpace:
    """The label names of a data set or a model, in the order of the logits."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for name in self.names:
            key = label_key(name)
            if not key:
                raise DataError("a label has an empty name; give every label at least one visible character")
            if len(name) > LONGEST_NAME:
                raise DataError(
                    f"label {name[:40]!r}… has {len(name)} characters (limit {LONGEST_NAME}); is the delimiter right?"
                )
            if key in seen:
                raise DataError(
                    f"labels {seen[key]!r} and {name!r} are the same but for case or spacing; "
                    "write them alike in the label file"
                )
            seen[key] = name

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and label_key(name) in self._positions

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label_key(name): i for i, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Position of a label; an unknown one is an error that names the closest."""
        try:
            return self._positions[label_key(name)]
        except KeyError:
            raise DataError(f"there is no label {name!r}{closest(name, self.names)}") from None

    def matrix(self, positives: Sequence[Iterable[int]]) -> np.ndarray:
        """[images, labels] int8 with the given positions PRESENT and everything else ABSENT."""
        matrix = np.zeros((len(positives), len(self)), np.int8)
        for row, indices in enumerate(positives):
            matrix[row, list(indices)] = PRESENT
        return matrix


def known(matrix: np.ndarray) -> np.ndarray:
    """True where a label is present or absent, False where nobody said."""
    somebody_said: np.ndarray = matrix != UNKNOWN
    return somebody_said


def without(matrix: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The matrix in which nobody says anything of these labels ([N] bool), so that they count in no figure."""
    return np.where(labels, np.int8(UNKNOWN), matrix) if labels.any() else matrix


def support(matrix: np.ndarray) -> np.ndarray:
    """How many images have each label. [labels] int64"""
    images: np.ndarray = (matrix == PRESENT).sum(axis=0, dtype=np.int64)
    return images


def never_trained(training_images: np.ndarray | None, unseen: np.ndarray | None, labels: int) -> np.ndarray:
    """Labels that no training image had, so that the model cannot know them; unseen ones are judged by figures of their
    own. [N] bool, none where it is not known."""
    if training_images is None:
        return np.zeros(labels, bool)
    never: np.ndarray = (training_images == 0) & (True if unseen is None else ~unseen)
    return never

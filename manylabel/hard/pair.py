"""Which pairs of an image and a label in it are hard, and which are easy.

The cost of a pair is the share of the images without the label that score as high or higher: how many false alarms it
takes to find it. Costs depend on the order of a label's scores only, so labels can be compared with each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manylabel.labels import ABSENT, PRESENT
from manylabel.metric import fit_thresholds

HARD = 0.05  # cost from which on a missed pair is low
EASY = 0.01  # cost up to which a found pair is easy


@dataclass(frozen=True)
class Pairs:
    """Every (image, present label), by image and then by label."""

    images: int
    labels: int
    row: np.ndarray  # [P] int64, the image
    label: np.ndarray  # [P] int64
    score: np.ndarray  # [P]
    cost: np.ndarray  # [P] 0..1, NaN where no image is known to lack the label
    found: np.ndarray  # [P] bool: the score reaches the label's threshold
    easy: np.ndarray  # [P] bool: found at a small cost
    low: np.ndarray  # [P] bool: missed, and to be found at a large cost only
    hard: np.ndarray  # [P] bool: low, while another label of the same image is easy

    def __len__(self) -> int:
        return len(self.row)

    def per_label(self, chosen: np.ndarray) -> np.ndarray:
        """How many of the chosen pairs each label has. [N]"""
        return np.bincount(self.label[chosen], minlength=self.labels)

    def per_image(self, chosen: np.ndarray) -> np.ndarray:
        """How many of the chosen pairs each image has. [n]"""
        return np.bincount(self.row[chosen], minlength=self.images)

    @property
    def everything(self) -> np.ndarray:
        return np.ones(len(self), bool)


def find_pairs(scores: np.ndarray, matrix: np.ndarray, hard: float = HARD, easy: float = EASY) -> Pairs:
    """The present pairs of scores [n, N] in 0..1 and labels [n, N]; unknown labels are neither present nor absent.

    Thresholds are those with the highest F1 on these very images.
    """
    if not 0 <= easy < hard <= 1:
        raise ValueError(f"an easy pair must cost less than a hard one: 0 <= {easy} < {hard} <= 1 does not hold")
    images, labels = matrix.shape
    row, label = np.nonzero(matrix == PRESENT)
    score = scores[row, label]
    thresholds = fit_thresholds(scores, matrix) if len(row) else np.zeros(labels)
    cost = _costs(scores, matrix, row, label)
    found = score >= thresholds[label]
    with np.errstate(invalid="ignore"):  # an undefined cost is neither small nor large
        is_easy = found & (cost <= easy)
        low = ~found & (cost >= hard)
    others = np.bincount(row[is_easy], minlength=images)[row]  # a low pair is not easy itself
    return Pairs(images, labels, row, label, score, cost, found, is_easy, low, low & (others > 0))


def _costs(scores: np.ndarray, matrix: np.ndarray, row: np.ndarray, label: np.ndarray) -> np.ndarray:
    cost = np.full(len(row), np.nan)
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(matrix.shape[1] + 1))
    for i in np.unique(label):
        without = np.sort(scores[matrix[:, i] == ABSENT, i])
        if len(without):
            mine = order[starts[i] : starts[i + 1]]
            below = np.searchsorted(without, scores[row[mine], i], side="left")
            cost[mine] = (len(without) - below) / len(without)
    return cost


def definition(hard: float = HARD, easy: float = EASY) -> str:
    """What a hard instance is, in words."""
    return (
        f"a label that is there but missed (its score is below the label's threshold), with at least {100 * hard:.3g} % of "
        "the images without the label scoring as high, in an image where another label is easy: found, with at most "
        f"{100 * easy:.3g} % of the images without it scoring as high"
    )

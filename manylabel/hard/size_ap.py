"""Average precision by object size: the positives are the images whose largest object of the label has that size."""

from __future__ import annotations

import numpy as np

from manylabel.hard.pair import Pairs
from manylabel.labels import ABSENT, UNKNOWN, support

FEWEST_POSITIVES = 5  # below it a label's figure is mostly chance


def sized_matrix(matrix: np.ndarray, pairs: Pairs, size: np.ndarray, which: int) -> np.ndarray:
    """Labels [n, N] in which present pairs of another size [P] (or of none) are unknown; what is absent stays absent."""
    sized = matrix.copy()
    others = size != which
    sized[pairs.row[others], pairs.label[others]] = UNKNOWN
    return sized


def scored_labels(sized: np.ndarray, fewest: int = FEWEST_POSITIVES) -> np.ndarray:
    """Numbers of the labels with enough positives of a size, and with images that lack them."""
    return np.flatnonzero((support(sized) >= fewest) & (sized == ABSENT).any(axis=0))

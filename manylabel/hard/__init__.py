"""Hard instances: labels that a model misses in images whose other labels it finds; pure functions of arrays."""

from manylabel.hard.correlation import Correlation, mean_within, spearman, spearman_interval
from manylabel.hard.object_size import LIMITS, SIZES, largest_shares, size_of
from manylabel.hard.pair import EASY, HARD, Pairs, definition, find_pairs
from manylabel.hard.size_ap import FEWEST_POSITIVES, scored_labels, sized_matrix

__all__ = [
    "EASY",
    "FEWEST_POSITIVES",
    "HARD",
    "LIMITS",
    "SIZES",
    "Correlation",
    "Pairs",
    "definition",
    "find_pairs",
    "largest_shares",
    "mean_within",
    "scored_labels",
    "size_of",
    "sized_matrix",
    "spearman",
    "spearman_interval",
]

"""Which images to train on and which to hold out: every label on both sides, groups together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manylabel.data.connected import connected
from manylabel.data.stratify import stratified_folds
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import support


def train_val_split(
    matrix: np.ndarray, validation_share: float = 0.2, seed: int = 0, groups: np.ndarray | None = None
) -> np.ndarray:
    """'train' or 'val' for each row of a tri-state label matrix; rows of one group stay together."""
    if not 0 < validation_share < 1:
        raise DataError(f"the validation share is {validation_share:g}; set it between 0 and 1, for example 0.2")
    if len(matrix) < 2:
        raise DataError(f"{len(matrix)} image(s) cannot be split; add images, or give a data set with a split column")
    return np.array(["train", "val"])[folds(matrix, (1 - validation_share, validation_share), seed, groups)]


def folds(matrix: np.ndarray, shares: Sequence[float], seed: int = 0, groups: np.ndarray | None = None) -> np.ndarray:
    """The part (0, 1, …) of each row, stratified; rows of one group ([n], any ids) stay together."""
    return stratified_folds(matrix, shares, seed, groups)


def joined_groups(*labellings: np.ndarray | None) -> np.ndarray | None:
    """One group per image where images are together if any labelling puts them together; '' and -1 mean alone."""
    given = [labelling for labelling in labellings if labelling is not None]
    if not given:
        return None
    pairs = []
    for labelling in given:
        first: dict[object, int] = {}
        for i, name in enumerate(labelling.tolist()):
            if name not in ("", -1, None):
                pairs.append((first.setdefault(name, i), i))
    return connected(len(given[0]), np.array(pairs, np.int64).reshape(-1, 2))


@dataclass(frozen=True)
class SplitResult:
    """A split and how good it is."""

    parts: np.ndarray  # [n] name of each image's part
    sizes: dict[str, int]
    wanted: dict[str, float]  # share of each part
    groups: int | None  # groups of more than one image that were kept together
    missing: dict[str, list[str]]  # per part, labels that have images enough but none in it
    too_rare: int  # labels with fewer images than there are parts
    deviation: float  # mean over labels and parts of |share of the label − wanted share|


def part_names_and_shares(val: float, test: float, folds: int | None) -> tuple[list[str], list[float]]:
    """train, val and test with their shares; or so many equal folds called 0, 1, …"""
    if folds is not None:
        return [str(i) for i in range(folds)], [1 / folds] * folds
    if not (0 < val < 1 and 0 <= test < 1 and val + test < 1):
        raise DataError(f"shares of {val:g} for val and {test:g} for test leave nothing to train on; lower them")
    wanted = {"train": 1 - val - test, "val": val, "test": test}
    return [name for name, share in wanted.items() if share], [share for share in wanted.values() if share]


def split_table(
    table: Table, names: Sequence[str], shares: Sequence[float], seed: int = 0, groups: np.ndarray | None = None
) -> SplitResult:
    """Split a table into named parts and say how well that went."""
    number = folds(table.matrix, shares, seed, groups)
    total = support(table.matrix)
    missing, deviations = {}, []
    for i, (name, share) in enumerate(zip(names, shares, strict=True)):
        has = support(table.matrix[number == i])
        absent = np.flatnonzero((has == 0) & (total >= len(names)))
        missing[name] = [table.labels.names[j] for j in absent]
        deviations.append(np.abs(has / np.maximum(total, 1) - share)[total >= len(names)])
    together = None if groups is None else int((np.unique(groups, return_counts=True)[1] > 1).sum())
    enough = np.concatenate(deviations)
    return SplitResult(
        parts=np.array(names)[number],
        sizes={name: int((number == i).sum()) for i, name in enumerate(names)},
        wanted=dict(zip(names, shares, strict=True)),
        groups=together,
        missing=missing,
        too_rare=int((total < len(names)).sum()),
        deviation=float(enough.mean()) if len(enough) else 0.0,
    )

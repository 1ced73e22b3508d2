"""Images that look alike, but have different labels: one of them is labelled wrongly, or they show different things."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from manylabel.data.audit.counts import CELLS
from manylabel.data.audit.duplicates import Duplicates, members
from manylabel.data.connected import connected
from manylabel.data.table import Table
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

MOST_IMAGES, MOST_LABELS = 20, 20  # of a group that are named


def contradictions(table: Table, found: Duplicates) -> list[dict[str, Any]]:
    """Groups of which some have a label that others are said not to have: byte-identical ones first, then near ones.

    Unknown entries never contradict. What exact copies disagree about among themselves is not said again of near ones.
    """
    copies = members(found.exact)
    groups = []
    for rows in copies.values():
        differing = np.flatnonzero(_both(table.matrix[rows]))
        if len(differing):
            groups.append(_group(table, "exact", rows, differing))
    groups += _near(table, found, copies)
    return sorted(groups, key=lambda group: (group["kind"], -group["size"]))


def _near(table: Table, found: Duplicates, copies: dict[int, np.ndarray]) -> list[dict[str, Any]]:
    """Near pairs that contradict each other, joined where they share an image."""
    pairs = []
    differing: list[np.ndarray] = []  # labels of each of these pairs
    step = max(1, CELLS // len(table.labels))
    for start in range(0, len(found.near), step):
        some = found.near[start : start + step]
        a, b = (_said(table, some[:, side], copies) for side in (0, 1))
        for i, labels in _by_row((a != b) & (a != UNKNOWN) & (b != UNKNOWN)):
            pairs.append(some[i])
            differing.append(labels)
    if not pairs:
        return []
    group = connected(len(table), np.array(pairs))
    labels_of: dict[int, list[np.ndarray]] = {}
    for (first, _), labels in zip(pairs, differing, strict=True):
        labels_of.setdefault(int(group[first]), []).append(labels)
    rows_of = members(group[found.exact])  # the copies of an image are where it is
    return [_group(table, "near", rows_of[at], np.unique(np.concatenate(labels))) for at, labels in labels_of.items()]


def _said(table: Table, rows: np.ndarray, copies: dict[int, np.ndarray]) -> np.ndarray:
    """What is said of each image by itself and all its exact copies; unknown where these disagree. [rows, L] int8"""
    matrix = table.matrix[rows]  # a copy
    for i, row in enumerate(rows.tolist()):
        if row in copies:
            said = table.matrix[copies[row]]
            matrix[i] = np.where(_both(said), UNKNOWN, said.max(axis=0))  # unknown is the smallest of the three
    return matrix


def _both(matrix: np.ndarray) -> np.ndarray:
    """Labels that some of these rows have and others have not. [k, L] → [L] bool"""
    return (matrix == PRESENT).any(axis=0) & (matrix == ABSENT).any(axis=0)


def _by_row(true: np.ndarray) -> Iterable[tuple[int, np.ndarray]]:
    """Rows with anything true in them, and where. [k, L] bool"""
    return ((i, np.flatnonzero(true[i])) for i in np.flatnonzero(true.any(axis=1)).tolist())


def _group(table: Table, kind: str, rows: np.ndarray, differing: np.ndarray) -> dict[str, Any]:
    return {
        "kind": kind,
        "images": [str(key) for key in table.keys[rows[:MOST_IMAGES]]],
        "size": len(rows),
        "labels": [table.labels.names[i] for i in differing[:MOST_LABELS]],
        "differing": len(differing),
    }

"""The same picture in two splits: what was learnt by heart is judged as if it were new."""

from __future__ import annotations

from typing import Any

import numpy as np

from manylabel.data.audit.duplicates import Duplicates, members
from manylabel.data.table import Table

MOST_LISTED = 1000


def find_leaks(table: Table, found: Duplicates) -> dict[str, Any]:
    """Exact and near duplicates between splits; all are counted, MOST_LISTED are named."""
    if table.split is None:
        return {"count": 0, "pairs": [], "images": {}}
    names, split = np.unique(table.split, return_inverse=True)
    held = np.zeros((len(table), len(names)), np.int64)  # images of an exact group, by its first row and split
    np.add.at(held, (found.exact, split.ravel()), 1)
    near = held.copy()
    for a, b in ((0, 1), (1, 0)):
        np.add.at(near, found.near[:, a], held[found.near[:, b]])
    own = near[found.exact, split.ravel()]
    leaking = near[found.exact].sum(axis=1) > own  # [n]
    a, b = held[found.near[:, 0]], held[found.near[:, 1]]  # [pairs, splits]
    between_near = a.sum(axis=1) * b.sum(axis=1) - (a * b).sum(axis=1)
    between_exact = (held.sum(axis=1) ** 2 - (held**2).sum(axis=1)) // 2
    images = {str(name): int(leaking[split.ravel() == i].sum()) for i, name in enumerate(names)}
    return {
        "count": int(between_near.sum() + between_exact.sum()),
        "pairs": _listed(table, found, np.flatnonzero(between_exact), np.flatnonzero(between_near)),
        "images": {name: count for name, count in images.items() if count},
    }


def _listed(table: Table, found: Duplicates, exact: np.ndarray, near: np.ndarray) -> list[dict[str, Any]]:
    groups = members(found.exact)
    pairs: list[dict[str, Any]] = []

    def add(a: np.ndarray, b: np.ndarray, kind: str, distance: int) -> None:
        split = table.split
        assert split is not None
        for i in a.tolist():
            for j in b.tolist():
                if len(pairs) == MOST_LISTED:
                    return
                if split[i] != split[j] and (kind == "near" or i < j):
                    keys, splits = [str(table.keys[i]), str(table.keys[j])], [str(split[i]), str(split[j])]
                    pairs.append({"images": keys, "splits": splits, "kind": kind, "distance": distance})

    for first in exact.tolist():
        add(groups[first], groups[first], "exact", 0)
    for pair in near.tolist():
        a, b = (groups.get(int(row), np.array([row])) for row in found.near[pair])
        add(a, b, "near", int(found.distance[pair]))
    return pairs

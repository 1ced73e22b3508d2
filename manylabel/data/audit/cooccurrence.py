"""Which labels come together: always, nearly always, as often as chance has it, or never."""

from __future__ import annotations

from typing import Any

import numpy as np

from manylabel.data.audit.counts import Counts
from manylabel.data.table import Table
from manylabel.labels import PRESENT, known

IMPLIED = 0.95  # share of a label's images from which another one "nearly always" comes with it
ENOUGH = 10  # images with a label before anything is said about its company
ENOUGH_TO_BE_THE_SAME = 5
EXPECTED = 20.0  # images with both that chance would give, when there is none: then they exclude each other
MOST_PAIRS = 200  # of each kind that are listed
MOST_NAMES = 30  # labels of the picture
MOST_LABELS = 3000  # the most frequent ones are looked at
WORK = 200_000_000_000  # images × labels² that are multiplied; beyond it some of the images are
BLOCK = 4096  # images multiplied together


def company(table: Table, counts: Counts, seed: int = 0) -> dict[str, Any]:
    """Pairs of labels; the lists hold the most telling MOST_PAIRS, the counts say how many there are. Unknown entries
    never count: a pair is judged on the images where both are known."""
    labels = np.argsort(-counts.support, kind="stable")[:MOST_LABELS]
    labels = np.sort(labels[counts.support[labels] > 0])
    rows = np.arange(len(table))
    if (work := len(rows) * len(labels) ** 2) > WORK:
        rows = rows[np.random.default_rng(seed).random(len(rows)) < WORK / work]
    joint, seen = _products(table, rows, labels, counts.unknown_share == 0)
    images = joint.diagonal()
    share = joint / np.maximum(seen, 1)
    other = ~np.eye(len(labels), dtype=bool)
    expected = seen * (counts.support / np.maximum(counts.known, 1))[labels]  # images with both that chance would give
    twins = (joint == images) & (joint == images[:, None]) & (images >= ENOUGH_TO_BE_THE_SAME)
    twins &= counts.absent[labels] == counts.absent[labels][:, None]
    never = (joint == 0) & (expected >= EXPECTED) & (images[:, None] >= ENOUGH_TO_BE_THE_SAME)
    implied, implied_count = _best((share >= IMPLIED) & (seen >= ENOUGH) & other, share + 1e-9 * seen)
    identical, identical_count = _best(np.triu(twins, 1), joint)
    exclusive, exclusive_count = _best(np.triu(never, 1), expected)
    pairs, _ = _best(np.triu(joint > 0, 1), joint)
    common = np.argsort(-counts.support[labels], kind="stable")[:MOST_NAMES]
    names = [table.labels.names[i] for i in labels]
    return {
        "images": len(rows),  # that were counted
        "names": [names[i] for i in common],  # the most frequent ones
        "counts": joint[np.ix_(common, common)].astype(int).tolist(),  # images with both
        "pairs": [[names[a], names[b], int(joint[a, b])] for a, b in pairs],
        "implied": [
            {"label": names[a], "with": names[b], "share": round(float(share[a, b]), 4), "support": int(seen[a, b])}
            for a, b in implied
        ],
        "implied_count": implied_count,
        "identical": [[names[a], names[b]] for a, b in identical],
        "identical_count": identical_count,
        "exclusive": [
            {"label": names[a], "other": names[b], "expected": round(float(expected[a, b]), 1)} for a, b in exclusive
        ],
        "exclusive_count": exclusive_count,
    }


def _products(table: Table, rows: np.ndarray, labels: np.ndarray, complete: bool) -> tuple[np.ndarray, np.ndarray]:
    """([i, j] images with labels i and j, [i, j] images with i of which j is known), exact below 2²⁴ images."""
    joint, seen = np.zeros((2, len(labels), len(labels)), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = table.matrix[np.ix_(rows[start : start + BLOCK], labels)]
        present = (block == PRESENT).astype(np.float32)  # [BLOCK, labels]
        joint += present.T @ present
        if not complete:
            seen += present.T @ known(block).astype(np.float32)
    return joint, np.repeat(joint.diagonal()[:, None], len(labels), axis=1) if complete else seen


def _best(which: np.ndarray, value: np.ndarray) -> tuple[list[tuple[int, int]], int]:
    """The pairs with the largest values, of equals the first; and how many there are."""
    a, b = np.nonzero(which)
    order = np.lexsort((b, a, -value[a, b]))[:MOST_PAIRS]
    return list(zip(a[order].tolist(), b[order].tolist(), strict=True)), len(a)

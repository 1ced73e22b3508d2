"""A second run beside the first: hard instances that it finds, AP by object size, AP of each label (Table 4)."""

from __future__ import annotations

import numpy as np

from manylabel.compare import Method, Run, compare_runs
from manylabel.core.comparison import Comparison
from manylabel.core.hard_findings import LabelDifference, Recovered, SecondRun
from manylabel.hard import Pairs, find_pairs, size_of
from manylabel.hard_runs.size_figures import size_differences


def compare_with(
    run: Run,
    other: Run,
    pairs: Pairs,
    share: np.ndarray | None,
    weights: np.ndarray | None,
    resamples: int,
    costs: tuple[float, float],
) -> SecondRun:
    names = (run.name, other.name) if run.name != other.name else (str(run.folder), str(other.folder))
    # Both count as methods of their own, even if they differ in their seed only.
    comparison = compare_runs([Method(names[0], (run,)), Method(names[1], (other,))], resamples=resamples)
    assert run.scores is not None
    assert other.scores is not None
    theirs = find_pairs(other.scores.scores, other.scores.matrix, *costs)
    change = comparison["differences"][0]
    return {
        "names": list(names),
        "mAP": {**change["mAP"], "first": run.results["mAP"], "second": other.results["mAP"]},
        "better": change["better"],
        "worse": change["worse"],
        "surely_better": change["surely_better"],
        "surely_worse": change["surely_worse"],
        "hard_of_first": recovered(pairs, theirs),
        "hard_of_second": recovered(theirs, pairs),
        "sizes": None if share is None else size_differences(run.scores, other.scores, pairs, size_of(share), weights),
        "labels": _labels(comparison),
        "notes": comparison["notes"],
    }


def recovered(mine: Pairs, theirs: Pairs) -> Recovered:
    """What another run makes of one run's hard instances; both have the same pairs."""
    return {
        "hard": int(mine.hard.sum()),
        "found": int((mine.hard & theirs.found).sum()),
        "easy": int((mine.hard & theirs.easy).sum()),
        "still_hard": int((mine.hard & theirs.hard).sum()),
    }


def _labels(comparison: Comparison) -> list[LabelDifference]:
    """AP of both and the difference, the worst labels of the first run at the top."""
    first, second = comparison["ap"].values()
    rows: list[LabelDifference] = [
        {"first": a, "second": b, "support": support, **row}
        for a, b, support, row in zip(
            first, second, comparison["support"], comparison["differences"][0]["labels"], strict=True
        )
        if a is not None and b is not None
    ]
    return sorted(rows, key=lambda row: (row["first"], row["name"]))

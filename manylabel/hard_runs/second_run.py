"""A second run beside the first: hard instances that it finds, AP by object size, AP of each label (Table 4)."""

from __future__ import annotations

import numpy as np

from manylabel.compare import Method, Run, compare_runs
from manylabel.core.comparison import Comparison
from manylabel.core.hard_findings import FoundInstance, LabelDifference, Recovered, SecondRun, TwoFigures
from manylabel.hard import Pairs, find_pairs, size_of
from manylabel.hard_runs.agreement import agreement
from manylabel.hard_runs.alpha import image_alphas, of_second, table_3
from manylabel.hard_runs.correlated import number
from manylabel.hard_runs.size_figures import size_differences
from manylabel.metric.f1 import F1, f1_scores
from manylabel.score_file import Scores


def compare_with(
    run: Run,
    other: Run,
    pairs: Pairs,
    share: np.ndarray | None,
    weights: np.ndarray | None,
    resamples: int,
    costs: tuple[float, float],
    top: int = 10,
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
        "figures": _at_half(run.scores, other.scores),
        "agreement": agreement(run, other, pairs, theirs),
        "correlations": of_second(run, other, pairs),
        "alphas": table_3(run, other),
        "found": found_by_second(other, pairs, theirs, run.labels, top),
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


def found_by_second(other: Run, mine: Pairs, theirs: Pairs, names: list[str], top: int) -> list[FoundInstance]:
    """What the first run misses and the second finds, by how much less it costs there (Fig. 2)."""
    assert other.scores is not None
    alphas = image_alphas(other, theirs)
    gain = np.where(~mine.found & theirs.found, mine.cost - theirs.cost, np.nan)
    order = [i for i in np.argsort(-gain, kind="stable")[:top] if gain[i] > 0]
    return [
        {
            "file": str(other.scores.keys[mine.row[i]]),
            "label": names[mine.label[i]],
            "first": round(float(mine.score[i]), 4),
            "second": round(float(theirs.score[i]), 4),
            "first_cost": number(mine.cost[i]),
            "second_cost": number(theirs.cost[i]),
            "alpha": None if alphas is None else float(alphas[mine.row[i]]),
        }
        for i in order
    ]


def _at_half(first: Scores, second: Scores) -> list[TwoFigures]:
    """CP, CR, CF1, OP, OR, OF1 as the paper has them."""
    mine, its = (f1_scores(each.scores, each.matrix) for each in (first, second))
    return [
        {"name": name, "first": round(100 * a, 4), "second": round(100 * b, 4)}
        for name, a, b in zip(F1._fields[:6], mine, its, strict=False)
    ]


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

"""Whether two runs find the same labels hard (Fig. 3 of RM's paper: the same ones, whatever the backbone)."""

from __future__ import annotations

import numpy as np

from manylabel.compare import Run
from manylabel.core.hard_findings import Agreement, Ends, RankedLabel
from manylabel.hard import FEWEST_POSITIVES, Pairs, spearman_interval
from manylabel.hard_runs.correlated import correlation, number

TENTH = 0.1  # best and worst labels


def best_and_worst(run: Run) -> Ends:
    """A tenth of the scored labels at either end, by average precision."""
    support = np.array([label["support"] for label in run.results["labels"]])
    scored = [i for i in np.argsort(run.ap, kind="stable") if not np.isnan(run.ap[i]) and support[i] > 0]
    many = min(max(1, round(TENTH * len(scored))), len(scored) // 2)
    named: list[RankedLabel] = [
        {"name": run.labels[i], "ap": number(run.ap[i]), "support": int(support[i])} for i in scored
    ]
    return {"worst": named[:many], "best": named[::-1][:many]}


def agreement(run: Run, other: Run, mine: Pairs, theirs: Pairs) -> Agreement:
    """Worst labels of both, against what chance gives; ranks of labels by average precision and by hard share."""
    first, second = ([row["name"] for row in best_and_worst(one)["worst"]] for one in (run, other))
    support = mine.per_label(mine.everything)
    enough = support >= FEWEST_POSITIVES
    shares = [each.per_label(each.hard)[enough] / support[enough] for each in (mine, theirs)]
    scored = int((~np.isnan(run.ap) & (support > 0)).sum())
    return {
        "worst": len(first),
        "shared": [name for name in first if name in second],
        "by_chance": round(len(first) * len(second) / scored, 2) if scored else 0.0,
        "ranks": [
            correlation(
                "ap", "ap", "average precision in both runs", spearman_interval(run.ap[enough], other.ap[enough])
            ),
            correlation("share", "share", "hard share in both runs", spearman_interval(*shares)),
        ],
    }

"""What `manylabel hard` finds out about a run, as plain values for JSON; a second run is compared with the first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from manylabel.compare import Run
from manylabel.compare.bootstrap import draws, interval
from manylabel.core.hard_findings import (
    HardFindings,
    LabelFact,
    LabelFacts,
    LabelImages,
    RankCorrelation,
    ShownInstance,
    SizeRow,
    Sizes,
)
from manylabel.error import DataError
from manylabel.hard import (
    EASY,
    FEWEST_POSITIVES,
    HARD,
    Pairs,
    definition,
    find_pairs,
    mean_within,
    size_of,
    spearman_interval,
)
from manylabel.hard_runs.agreement import best_and_worst
from manylabel.hard_runs.alpha import of_images
from manylabel.hard_runs.correlated import correlation, number
from manylabel.hard_runs.run_data import RunData, read_run_data
from manylabel.hard_runs.second_run import compare_with
from manylabel.hard_runs.size_figures import size_figures
from manylabel.hard_section import count_pairs, hardest_images, label_rows, labels_of, object_shares, size_rows
from manylabel.storage.output import MADE_BY
from manylabel.suggest import closest

SCHEMA = 1
FACTS: dict[LabelFact, str] = {
    "share": "hard share",
    "ap": "average precision",
    "train": "training images",
    "size": "median object size",
    "alpha": "share of earlier stages (alpha)",
}
MINE: tuple[LabelFact, ...] = ("share", "ap")
THEIRS: tuple[LabelFact, ...] = ("ap", "train", "size", "alpha")  # what each of these may go with
PICTURED = 3  # labels whose images are shown when nobody asks for one


def study_runs(
    run: Run,
    other: Run | None = None,
    *,
    labels: Sequence[str] = (),
    top: int = 10,
    hard: float = HARD,
    easy: float = EASY,
    resamples: int = 1000,
) -> tuple[HardFindings, RunData | None]:
    """(findings, the run's data where it can be read); `labels`: those whose images are listed."""
    for name in labels:
        if name not in run.labels:
            raise DataError(f"there is no label {name!r}{closest(name, run.labels)}")
    for each in (run, other):
        if each is not None and each.scores is None:
            raise DataError(
                f"{each.folder} has no scores.npz (it is older, very large, or only a results file); "
                "train it again to write one"
            )
    assert run.scores is not None
    data, why = read_run_data(run)
    pairs = find_pairs(run.scores.scores, run.scores.matrix, hard, easy)
    share = None if data is None else object_shares(data.judged, pairs)
    rows = _labels(run, pairs, data, share)
    weights = draws(pairs.images, resamples) if resamples else None
    found: HardFindings = {
        "schema": SCHEMA,
        "made_by": MADE_BY,
        "run": run.name,
        "data": run.results["data"],
        "definition": definition(hard, easy),
        "hard_cost": hard,
        "easy_cost": easy,
        "resamples": resamples,
        **count_pairs(pairs),
        "labels": rows,
        **best_and_worst(run),
        "correlations": _correlations(rows, pairs, share)
        + of_images(run, pairs, "cost of the hardest label and alpha"),
        "sizes": None if share is None else _sizes(run, pairs, share, weights),
        "images_shown": [image for _, image in hardest_images(pairs, run.labels, run.scores.keys, top)],
        "pictured": [
            _images_of(run, pairs, share, name, top) for name in (labels or [r["name"] for r in rows[:PICTURED]])
        ],
        "second": None
        if other is None
        else compare_with(run, other, pairs, share, weights, resamples, (hard, easy), top),
        "notes": [],
    }
    found["notes"] = _notes(found, data, why)
    return found, data


def _labels(run: Run, pairs: Pairs, data: RunData | None, share: np.ndarray | None) -> list[LabelFacts]:
    place = {name: i for i, name in enumerate(run.labels)}
    stored = {label["name"]: label for label in run.results["labels"]}
    rows: list[LabelFacts] = []
    for row in label_rows(pairs, run.labels):
        i = place[row["name"]]
        train = None if data is None or data.train is None or np.isnan(data.train[i]) else int(data.train[i])
        own = np.empty(0) if share is None else share[pairs.label == i]
        own = own[~np.isnan(own)]
        size = round(float(np.median(own)), 6) if len(own) else None
        facts: LabelFacts = {
            "name": row["name"],
            "support": row["support"],
            "low": row["low"],
            "hard": row["hard"],
            "share": row["share"],
            "ap": number(run.ap[i]),
            "train": train,
            "size": size,
        }
        if (alpha := stored[row["name"]].get("alpha")) is not None:
            facts["alpha"] = alpha
        if (alphas := stored[row["name"]].get("alphas")) is not None:
            facts["alphas"] = alphas
        rows.append(facts)
    return rows


def _correlations(rows: list[LabelFacts], pairs: Pairs, share: np.ndarray | None) -> list[RankCorrelation]:
    """Of hard share and average precision with other facts about labels, over labels with enough images."""
    enough = [row for row in rows if row["support"] >= FEWEST_POSITIVES]

    def column(key: LabelFact) -> np.ndarray:
        return np.array([np.nan if row.get(key) is None else row[key] for row in enough], float)

    found = []
    for mine in MINE:
        for key in THEIRS:
            values = column(key)
            if key != mine and not np.isnan(values).all():
                c = spearman_interval(column(mine), values)
                found.append(correlation(mine, key, f"{FACTS[mine]} and {FACTS[key]}", c))
    if share is not None:
        known = ~np.isnan(share) & ~np.isnan(pairs.cost)
        within = mean_within(pairs.label[known], pairs.cost[known], share[known])
        found.append(correlation("cost", "size", "cost and object size, within labels", within))
    return found


def _sizes(run: Run, pairs: Pairs, share: np.ndarray, weights: np.ndarray | None) -> Sizes:
    assert run.scores is not None
    size = size_of(share)
    figures = size_figures(run.scores, pairs, size)
    rows: list[SizeRow] = []
    for which, row in enumerate(size_rows(pairs, share)):
        of_size = size == which
        low, high = _drawn_share(pairs.per_image(of_size & pairs.hard), pairs.per_image(of_size), weights)
        rows.append({**row, "low": number(low), "high": number(high), **figures[which]})
    return {"rows": rows, "without_box": int((size < 0).sum()), "fewest_positives": FEWEST_POSITIVES}


def _drawn_share(hard: np.ndarray, every: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """The middle 95 % of the share of hard pairs over images drawn anew."""
    if weights is None:
        return math.nan, math.nan
    drawn = weights @ every
    return interval(np.divide(weights @ hard, drawn, out=np.full(len(drawn), np.nan), where=drawn > 0))


def _images_of(run: Run, pairs: Pairs, share: np.ndarray | None, name: str, top: int) -> LabelImages:
    """Images of a label with its smallest and its largest scores (Fig. 4 of the paper)."""
    assert run.scores is not None
    mine = np.flatnonzero(pairs.label == run.labels.index(name))
    order = mine[np.argsort(pairs.score[mine], kind="stable")]
    many = min(top, len(order) // 2) if len(order) > 1 else len(order)

    def row(i: int) -> ShownInstance:
        labels = labels_of(pairs, int(pairs.row[i]), run.labels)
        own = next(label for label in labels if label["label"] == name)
        size = None if share is None else number(share[i])
        others = [label for label in labels if label is not own]
        return {"file": str(run.scores.keys[pairs.row[i]]), **own, "size": size, "others": others}  # type: ignore[union-attr]

    return {
        "label": name,
        "images": len(mine),
        "smallest": [row(i) for i in order[:many]],
        "largest": [row(i) for i in order[::-1][:many]] if len(order) > 1 else [],
    }


def _notes(found: HardFindings, data: RunData | None, why: str) -> list[str]:
    notes = []
    if not found["images_with_several"]:
        notes.append("no image has two labels, so no instance can be hard: a hard one stands beside an easy one")
    if data is None:
        notes.append(f"training images, object sizes and pictures are left out: the data cannot be read ({why})")
    elif found["sizes"] is None and found["pairs"]:
        notes.append("figures by object size are left out: the data has no boxes")
    elif found["sizes"] and found["sizes"]["without_box"]:
        notes.append(f"{found['sizes']['without_box']} pairs have no box of their own and no size")
    if data is not None and data.train is None:
        notes.append("how many training images a label has is not known here: the data has no split 'train'")
    few = sum(row["support"] < FEWEST_POSITIVES for row in found["labels"])
    if few:
        notes.append(f"{few} labels have fewer than {FEWEST_POSITIVES} images here; correlations leave them out")
    if found["hard_pairs"]:
        notes.append(
            "hard share and average precision come from the same scores: that they go together is no discovery by itself"
        )
    if found["sizes"] is not None:
        notes.append(
            "average precision falls with the number of positives alone: compare it between runs, not between sizes"
        )
    return notes

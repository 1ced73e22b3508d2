"""Whether α tells how hard something is: of labels (Table 3 of RM's paper, beside a linear probe's AP), and of images."""

from __future__ import annotations

import numpy as np

from manylabel.compare import Run
from manylabel.core.hard_findings import AlphaRow, RankCorrelation
from manylabel.hard import FEWEST_POSITIVES, Pairs, spearman_interval
from manylabel.hard_runs.correlated import correlation, number

MOST_DRAWN = 4_000_000  # numbers at a time, of images drawn anew


def label_alphas(run: Run) -> np.ndarray:
    """Mean α of the images with each label. [N], NaN where the run mixes nothing"""
    rows = run.results["labels"]
    return np.array([np.nan if row.get("alpha") is None else row["alpha"] for row in rows], float)


def image_alphas(run: Run, pairs: Pairs) -> np.ndarray | None:
    """α of each image [n]: with an α for each label the mean over those that are there; None where none is kept."""
    if run.scores is None or run.scores.alpha is None:
        return None
    alpha = run.scores.alpha[pairs.row, pairs.label if run.scores.alpha.shape[1] > 1 else 0]
    count = pairs.per_image(pairs.everything)
    total = np.bincount(pairs.row, alpha, minlength=pairs.images)
    mean: np.ndarray = np.divide(total, count, out=np.full(pairs.images, np.nan), where=count > 0)
    return mean


def image_costs(pairs: Pairs) -> np.ndarray:
    """The cost of the hardest label in each image. [n], NaN where there is none"""
    worst = np.full(pairs.images, np.nan)
    np.fmax.at(worst, pairs.row, pairs.cost)
    return worst


def of_images(mixing: Run, pairs: Pairs, name: str) -> list[RankCorrelation]:
    """α in the run that mixes, and the cost of each image's hardest label in the run of `pairs`."""
    alpha = image_alphas(mixing, pairs)
    if alpha is None:
        return []
    found = spearman_interval(alpha, image_costs(pairs), draws=min(2000, max(100, MOST_DRAWN // len(alpha))))
    return [correlation("cost", "alpha", f"{name} (images)", found)]


def of_second(run: Run, other: Run, pairs: Pairs) -> list[RankCorrelation]:
    """α of a run that mixes, with what another one, as a linear probe, finds hard."""
    alpha, support = label_alphas(other), pairs.per_label(pairs.everything)
    enough = support >= FEWEST_POSITIVES
    found = []
    if not np.isnan(alpha[enough]).all():
        share = pairs.per_label(pairs.hard)[enough] / support[enough]
        ap = spearman_interval(run.ap[enough], alpha[enough])
        found.append(correlation("ap", "alpha", "first run's average precision and second run's alpha", ap))
        hard = spearman_interval(share, alpha[enough])
        found.append(correlation("share", "alpha", "first run's hard share and second run's alpha", hard))
    return found + of_images(other, pairs, "first run's cost of the hardest label and second run's alpha")


def table_3(run: Run, other: Run) -> list[AlphaRow]:
    """Labels by the second run's α, the largest first, with the first run's average precision and its place from below."""
    alpha, ap = label_alphas(other), run.ap
    place = np.where(np.isnan(ap), 0, 1 + (ap[:, None] > ap).sum(axis=1))
    order = [i for i in np.argsort(-alpha, kind="stable") if not np.isnan(alpha[i])]
    return [
        {"name": run.labels[i], "alpha": float(alpha[i]), "ap": number(ap[i]), "place": int(place[i])} for i in order
    ]

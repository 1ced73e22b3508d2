"""How deep labels look: the share α that earlier stages have in the mix of RM, image by image and label by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from manylabel.labels import PRESENT

Shares = Mapping[str, np.ndarray]  # stage → [n, 1], or [n, N] where every label has its own
TOO_HIGH = 0.9


class LabelShare(TypedDict):
    """Of one label; None where no image has it."""

    alpha: float | None
    alphas: dict[str, float] | None  # of each stage


def total_share(shares: Shares) -> np.ndarray:
    """α: all earlier stages together. [n, 1] or [n, N]"""
    alpha: np.ndarray = np.sum(list(shares.values()), axis=0)
    return alpha


def brief(share: Any) -> float:
    """Six significant digits: the paper's shares are of the order of 1e-9."""
    return float(f"{float(share):.6g}")


def mean_share(shares: Shares | None) -> dict[str, float]:
    """For the history of a run."""
    return {} if not shares else {"alpha": brief(total_share(shares).mean())}


def warnings(shares: Shares | None) -> list[str]:
    """Whether the mix has left the pre-trained feature behind, which costs accuracy without a word."""
    if not shares or total_share(shares).mean() <= TOO_HIGH:
        return []
    return [
        f"α is {total_share(shares).mean():.2f} on average: earlier stages have all but replaced the backbone's output; "
        "look at the rate (optimiser.lr), the head's first biases (head.prior_bias) and the stages (neck.stages)"
    ]


def shares_of_labels(shares: Shares | None, matrix: np.ndarray) -> Sequence[LabelShare] | None:
    """For every label the mean over the images that have it (the paper's Table 3): α, and α of each stage."""
    if not shares:
        return None
    present = matrix == PRESENT  # [n, N]
    counts = present.sum(axis=0)  # [N]
    means = {
        stage: np.where(counts > 0, (present * values).sum(axis=0) / np.maximum(counts, 1), np.nan)
        for stage, values in shares.items()
    }  # stage → [N]
    return [
        {"alpha": None, "alphas": None}
        if not counts[n]
        else {
            "alpha": brief(sum(m[n] for m in means.values())),
            "alphas": {stage: brief(m[n]) for stage, m in means.items()},
        }
        for n in range(matrix.shape[1])
    ]

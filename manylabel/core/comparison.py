"""What a comparison of runs of one task holds (comparison.json). Changes are to the first method, in points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from manylabel.core.described import TableWords, Words
from manylabel.core.expert_weights import ExpertWeights
from manylabel.core.results import JudgedOn


class Interval(TypedDict):
    """The middle 95 %; None where it is not known."""

    low: float | None
    high: float | None


class Change(Interval):
    change: float | None


class LabelChange(Change):
    name: str


class Difference(TypedDict):
    """Of one method to the first."""

    method: str
    mAP: Change
    better: int  # labels
    worse: int
    surely_better: int
    surely_worse: int
    pairs_together: int  # pairs of labels of which neither is worse
    pairs_share: float | None  # of all pairs, in percent
    labels: list[LabelChange]


class PairGap(TypedDict):
    """Two labels that somebody asked for, by method."""

    labels: list[str]
    ap: dict[str, list[float | None]]
    gap: dict[str, float | None]


class Resolutions(TypedDict):
    """mAP of one method at several sizes of the images."""

    name: str
    sizes: list[int]
    mAP: list[float | None]


class ExpertLoad(ExpertWeights):
    method: str


class ComparedMethod(TypedDict):
    """Means over seeds. Figures stand beside these, under their places: `figure_of` reads them."""

    name: str
    runs: list[str]
    mAP: float | None
    deviations: dict[str, float | None]  # by place
    mAP_seeds: list[float | None]
    mAP_deviation: float | None
    parameters: float | None
    trainable_parameters: float | None
    gmacs: float | None
    image_size: int | None
    train_seconds: float | None


class Comparison(TypedDict):
    schema: int
    made_by: str
    warnings: list[str]
    data: JudgedOn
    baseline: str
    metrics: dict[str, Words]  # by place
    tables: dict[str, TableWords]
    resamples: int  # 0 where there are no intervals
    notes: list[str]
    methods: list[ComparedMethod]
    labels: list[str]
    support: list[int]
    ap: dict[str, list[float | None]]  # by method
    differences: list[Difference]
    pairs: list[PairGap]
    resolutions: list[Resolutions]
    experts: list[ExpertLoad]


def figure_of(method: ComparedMethod, place: str) -> float | None:
    figures: Mapping[str, Any] = method
    found: float | None = figures[place]
    return found

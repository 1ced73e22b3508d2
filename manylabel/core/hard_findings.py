"""What `manylabel hard` finds out about a run (hard.json), and about a second one beside it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from manylabel.core.comparison import Change, Interval, LabelChange
from manylabel.core.hard_section import HardImage, HardLabel, Instance, PairCounts, SizeShare
from manylabel.core.results import JudgedOn

LabelFact = Literal["share", "ap", "train", "size", "alpha"]


class LabelFacts(HardLabel):
    """A label, and what may go with its hard share; None where it is not known."""

    ap: float | None
    train: int | None  # images
    size: float | None  # median share of the image
    alpha: NotRequired[float]  # share of earlier stages
    alphas: NotRequired[dict[str, float]]  # of each stage


class RankedLabel(TypedDict):
    name: str
    ap: float | None
    support: int


class Ends(TypedDict):
    """A tenth of the labels at either end, by average precision."""

    worst: list[RankedLabel]
    best: list[RankedLabel]


class RankCorrelation(Interval):
    of: list[LabelFact | Literal["cost"]]  # two facts
    name: str
    labels: int
    rho: float | None


class SizeFigures(TypedDict):
    """Of the labels with enough positives of one size."""

    labels_scored: int
    positives: int
    mAP: float | None


class SizeRow(SizeShare, SizeFigures, Interval):
    """The interval is of the share that is hard."""


class Sizes(TypedDict):
    rows: list[SizeRow]
    without_box: int  # pairs
    fewest_positives: int


class ShownInstance(Instance):
    """One label of an image that is shown for it."""

    file: str
    size: float | None
    others: list[Instance]


class LabelImages(TypedDict):
    """Images of a label with its smallest and its largest scores."""

    label: str
    images: int
    smallest: list[ShownInstance]
    largest: list[ShownInstance]


class Recovered(TypedDict):
    """What another run makes of one run's hard instances."""

    hard: int
    found: int
    easy: int
    still_hard: int


class MeanDifference(Change):
    first: float | None
    second: float | None


class SizeDifference(MeanDifference):
    name: str
    labels_scored: int
    positives: int


class LabelDifference(LabelChange):
    first: float
    second: float
    support: int


class Agreement(TypedDict):
    """Of the labels that two runs find hardest."""

    worst: int  # labels in a tenth by average precision
    shared: list[str]  # of the first run's, those that are the second's, too
    by_chance: float  # how many would be shared if the two knew nothing of each other
    ranks: list[RankCorrelation]


class AlphaRow(TypedDict):
    """A label with the second run's α and the first run's average precision."""

    name: str
    alpha: float
    ap: float | None
    place: int  # by average precision from below; 0 where it has none


class FoundInstance(TypedDict):
    """A label in an image that the first run misses and the second finds."""

    file: str
    label: str
    first: float  # scores
    second: float
    first_cost: float | None
    second_cost: float | None
    alpha: float | None  # of the image in the second run


class TwoFigures(TypedDict):
    """In percent, at score 0.5."""

    name: str
    first: float
    second: float


class SecondRun(TypedDict):
    names: list[str]  # of both runs
    mAP: MeanDifference
    better: int
    worse: int
    surely_better: int
    surely_worse: int
    hard_of_first: Recovered
    hard_of_second: Recovered
    sizes: list[SizeDifference] | None
    labels: list[LabelDifference]
    figures: list[TwoFigures]
    agreement: Agreement
    correlations: list[RankCorrelation]
    alphas: list[AlphaRow]
    found: list[FoundInstance]
    notes: list[str]


class HardFindings(PairCounts, Ends):
    schema: int
    made_by: str
    run: str
    data: JudgedOn
    definition: str
    hard_cost: float
    easy_cost: float
    resamples: int
    labels: list[LabelFacts]
    correlations: list[RankCorrelation]
    sizes: Sizes | None  # None where the data has no boxes, or is not there
    images_shown: list[HardImage]
    pictured: list[LabelImages]
    second: SecondRun | None
    notes: list[str]

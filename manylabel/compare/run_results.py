"""What is read of the results of a finished run, of one task or of several, once they are checked."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from manylabel.core.described import TableWords, Words
from manylabel.core.expert_weights import ExpertWeights
from manylabel.core.results import JudgedOn
from manylabel.core.task_results import TaskResults


class RunLabel(TypedDict):
    name: str
    ap: float | None
    support: int
    never_trained: NotRequired[bool]
    unseen: NotRequired[bool]
    alpha: NotRequired[float | None]  # share of earlier stages
    alphas: NotRequired[dict[str, float] | None]


class RunModel(TypedDict, total=False):
    head: str
    parameters: float | None
    trainable_parameters: float | None
    gmacs: float | None
    image_size: int | None


class RunResults(TypedDict):
    """Of one task all but `tasks`, with figures at their places beside them (figure.at); of several `tasks` and `model`."""

    model: RunModel
    warnings: NotRequired[list[str]]
    data: NotRequired[JudgedOn]
    labels: NotRequired[list[RunLabel]]
    metrics: NotRequired[dict[str, Words]]
    tables: NotRequired[dict[str, TableWords]]
    mAP: NotRequired[float | None]
    tasks: NotRequired[dict[str, TaskResults]]


class RunDetails(TypedDict, total=False):
    experts: ExpertWeights | None

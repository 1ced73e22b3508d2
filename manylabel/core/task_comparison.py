"""What a comparison of runs with several tasks holds (comparison.json)."""

from __future__ import annotations

from typing import TypedDict

from manylabel.core.described import Words


class Spread(TypedDict):
    """A figure over seeds."""

    mean: float
    deviation: float | None
    seeds: list[float]


class TaskCost(TypedDict):
    """What a prediction uses; means over seeds."""

    experts: list[int]  # of each seed
    active_parameters: float
    backbone_parameters: float | None
    gmacs: float
    head_gmacs: float


class TaskMethod(TypedDict):
    name: str
    runs: list[str]
    figures: list[Spread | None]  # in the order of the columns
    more: list[Spread | None]
    mean: float | None
    tasks: dict[str, TaskCost]
    parameters: float | None
    seconds: float | None
    change: float | None  # mean difference to the first method, in points


class TaskComparison(TypedDict):
    schema: int
    made_by: str
    warnings: list[str]
    notes: list[str]
    columns: list[list[str]]  # task and figure
    more: list[list[str]]
    metrics: dict[str, dict[str, Words]]  # task → figure
    methods: list[TaskMethod]

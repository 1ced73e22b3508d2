"""The phases of a run: the head alone on cached features, one task before the others, and then all that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from manylabel.config import Config, Part, TrainConfig
from manylabel.model import Model
from manylabel.training.work import TaskAtWork


@dataclass(frozen=True)
class Prepared:
    """What a phase trains, and with which images: made when it begins, for features may have to be computed first."""

    model: Model
    works: Mapping[str, TaskAtWork]


@dataclass(frozen=True)
class Phase:
    """A stretch of training with an optimiser and a schedule of its own."""

    prepare: Callable[[], Prepared]
    active: Sequence[str]  # the tasks that are trained, the leading one first
    train: TrainConfig
    optimiser: Part
    schedule: Part
    folder: Path  # of its checkpoints and its history
    best_by: str | None = None  # whose figure chooses the weights that leave it, or MEAN; None = the last are kept
    head_only: bool = False
    before: int = 0  # steps of earlier phases in the same folder
    adapts: bool = False  # tasks find out how many experts they use
    alone: bool = False  # one task before the others
    says: str = ""  # stands before what it says

    @property
    def lead(self) -> str:
        return self.active[0]


MEAN = "mean"  # of the tasks' goals


def first_parts(config: Config) -> tuple[Part, Part]:
    """Optimiser and schedule of the phase in which one task is trained before the others."""
    t, optimiser, schedule = config.train, config.optimiser, config.schedule
    return (
        Part(optimiser.name, {**optimiser.options, **t.first_optimiser}),
        Part(schedule.name, {**schedule.options, **t.first_schedule}),
    )


class TrainedPart:
    """The parameters that a phase trains, as an optimiser is built from them."""

    def __init__(self, model: Model, head_only: bool) -> None:
        self.model, self.head_only = model, head_only

    def named_parameters(self) -> Sequence[tuple[str, nn.Parameter]]:
        return [
            (name, p)
            for name, p in self.model.named_parameters()
            if not (self.head_only and name.startswith("backbone."))
        ]

    def rates(self, options: object) -> Mapping[str, float]:
        return self.model.rates(options)

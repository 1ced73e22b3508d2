"""What is written down of training: a line of metrics.jsonl, and sentences on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manylabel.core.results import HistoryRow
from manylabel.metric import Judged, measured
from manylabel.mixing import mean_share, warnings
from manylabel.training.gate_watch import gate_figures, gate_warnings
from manylabel.training.phase import MEAN, Phase
from manylabel.training.scoring import Scored
from manylabel.training.state import State
from manylabel.training.work import TaskAtWork

DRAWN = "mAP"  # the metric whose rise the report draws, whatever the goal is
Figures = Mapping[str, "float | None"]


@dataclass(frozen=True)
class Noted:
    """Where training is."""

    epoch: int
    step: int
    lr: float
    seconds: float
    k: Mapping[str, int]  # experts of a token
    pulls: Mapping[str, Mapping[str, float]]  # between tasks; {} = nobody looked


def figures_of(work: TaskAtWork, scored: Scored, every: bool = False) -> dict[str, float | None]:
    """In percent, on what training may look at: the goal and what the report draws, or all that stand for themselves."""
    judged: Any = work.task.judged(scored.evidence, work.table, work.never_trained)
    if not isinstance(judged, Judged):
        return measured(judged, work.task.figures)
    if work.unseen is not None:
        judged = judged.part(np.flatnonzero(~work.unseen))
    return measured(judged, work.task.figures if every else (work.task.goal, DRAWN))


def goal_value(figures: Mapping[str, Figures], works: Mapping[str, TaskAtWork], best_by: str | None) -> float | None:
    """By which weights are chosen."""
    goals = {name: of_task[works[name].task.goal] for name, of_task in figures.items()}
    if best_by == MEAN:
        known = [value for value in goals.values() if value is not None]
        return float(np.mean(known)) if len(known) == len(goals) else None
    return goals.get(best_by or next(iter(goals)))


def goal_words(works: Mapping[str, TaskAtWork], phase: Phase) -> str:
    """What the figure is called by which weights are chosen."""
    return MEAN if phase.best_by == MEAN else works[phase.best_by or phase.lead].task.goal


def flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """{"loss": {"labels": 1.0}} → {"loss/labels": 1.0}, as trackers want it."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        found |= flat(value, f"{before}{key}/") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return found


def row_of(
    noted: Noted, state: State, figures: Mapping[str, Figures], scored: Mapping[str, Scored], by_task: bool
) -> HistoryRow:
    """Of a run with one task with labels its figures stand for themselves; others are told by task."""
    losses, images = state.mean_losses(), state.images
    ends = {"rate": noted.lr, "seconds": noted.seconds}
    capacity = {"k": dict(noted.k)} if noted.k else {}
    if by_task:
        judged = {"judged": {name: dict(one) for name, one in figures.items()}} if figures else {}
        return {"epoch": noted.epoch, "step": noted.step, "loss": losses, **capacity, **ends, **judged, **noted.pulls}
    return {
        "epoch": noted.epoch,
        "step": noted.step,
        "loss": next(iter(losses.values()), 0.0),
        **next(iter(figures.values()), {}),
        **ends,
        "images": next(iter(images.values()), 0),
        **capacity,
        **{key: value for one in scored.values() for key, value in gate_figures(one.use).items()},
        **{key: value for one in scored.values() for key, value in mean_share(one.shares).items()},
    }


def sentences(
    row: HistoryRow,
    scored: Mapping[str, Scored],
    figures: Mapping[str, Figures],
    works: Mapping[str, TaskAtWork],
    phase: Phase,
) -> Sequence[str]:
    """After an evaluation: how it goes, and what somebody should know who waits for it."""
    found = []
    for name, one in scored.items():
        value = figures[name][works[name].task.goal]
        told = "–" if value is None else f"{value:.2f}"
        losses = row["loss"]
        loss = losses.get(name, float("nan")) if isinstance(losses, Mapping) else losses
        where = f"step {row['step']}" if phase.train.steps else f"epoch {row['epoch']}/{phase.train.epochs}"
        whose = f"{name}: " if len(works) > 1 else ""
        found.append(f"{where}  {whose}loss {loss:.4f}  {works[name].task.goal} {told}  {row['seconds']:.1f} s")
        found += [f"{whose}{sentence}" for sentence in (*gate_warnings(one.use), *warnings(one.shares))]
    return found

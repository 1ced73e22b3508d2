"""The table of a task: read, and when it is split (`one_split.py`) without unseen labels in training, checked for sense."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manylabel import console
from manylabel.config import TaskConfig
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import ABSENT, support
from manylabel.task import AnyTask
from manylabel.zero_shot import unseen_labels, without_unseen


@dataclass(frozen=True)
class TrainingTable:
    """Images for training and validation; the test part is for evaluate alone."""

    table: Table
    unseen: np.ndarray  # [N] bool: labels that training never tells


def fitted_table(config: TaskConfig, task: AnyTask) -> Table:
    """All images, as the task needs them."""
    table = task.fit(read_table(config.data))
    for note in table.notes:
        console.say(f"{table.name}: {note}")
    return table


def training_table(config: TaskConfig, task: AnyTask, table: Table) -> TrainingTable:
    """`table`: with the part of every image."""
    unseen = unseen_labels(config.zero_shot, table)
    before = len(table)
    table = without_unseen(config.zero_shot, table, unseen)
    if unseen.any():
        left_out = f"; {before - len(table)} training images that show them are left out" if before > len(table) else ""
        console.say(f"{table.name}: {unseen.sum()} of {len(unseen)} labels are unseen in training{left_out}")
    _check(table, unseen, task)
    hint = task.hint(table)
    if hint:
        console.say(f"{table.name}: {hint}")
    parts = table.split if table.split is not None else np.empty(0)
    counts = ", ".join(f"{np.count_nonzero(parts == part)} {part}" for part in ("train", "val", "test"))
    console.say(f"{table.name}: {len(table)} images ({counts}), {len(table.labels)} labels")
    return TrainingTable(table.subset(np.flatnonzero(parts != "test")), unseen)


def _check(table: Table, unseen: np.ndarray, task: AnyTask) -> None:
    train = table.matrix[table.rows("train")]
    never = [table.labels.names[i] for i in np.flatnonzero((support(train) == 0) & ~unseen)]
    if never:
        shown = ", ".join(never[:5]) + (", …" if len(never) > 5 else "")
        console.warn(f"{len(never)} labels have no training image and cannot be learnt: {shown}")
    if task.finds_objects:  # labels are told apart image by image, but boxes have a background anyway
        return
    one_sided = ((train == ABSENT).sum(axis=0) == 0)[~unseen]
    if one_sided.all():
        raise DataError(
            f"{table.name}: no label is absent anywhere, so there is nothing to tell apart; if blank cells mean absent, "
            "say so with --set data.blank=absent"
        )
    if one_sided.any():
        console.warn(f"{one_sided.sum()} labels are absent from no training image; a model can only say yes to them")

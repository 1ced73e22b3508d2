"""The table of a run: read, split where the data has no split, without unseen labels in training, checked for sense."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manylabel import console
from manylabel.config import TaskConfig
from manylabel.data.read import read_table
from manylabel.data.split import joined_groups, train_val_split
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import ABSENT, support
from manylabel.run.folder import read_split
from manylabel.task import AnyTask
from manylabel.zero_shot import unseen_labels, without_unseen


@dataclass(frozen=True)
class TrainingTable:
    """Images for training and validation; the test part is for evaluate alone."""

    table: Table
    unseen: np.ndarray  # [N] bool: labels that training never tells
    new_split: dict[str, str]  # the split that was made here, if the data had none


def training_table(config: TaskConfig, task: AnyTask, seed: int, folder: Path, resume: bool) -> TrainingTable:
    """`folder`: where the split that was made for it is kept."""
    table = task.fit(read_table(config.data))
    for note in table.notes:
        console.say(f"{table.name}: {note}")
    new_split: dict[str, str] = {}
    if table.split is None or "val" not in table.split:
        kept = _kept_split(folder, table) if resume else None
        split = kept if kept is not None else _own_split(config, table, seed)
        table = replace(table, split=split)
        if kept is None:
            new_split = dict(zip(table.keys.tolist(), split.tolist(), strict=True))
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
    return TrainingTable(table.subset(np.flatnonzero(parts != "test")), unseen, new_split)


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


def _kept_split(folder: Path, table: Table) -> np.ndarray | None:
    """The split this run made before it was stopped."""
    kept = read_split(folder, table)
    if kept is not None and (kept == "").any():
        new = table.keys[kept == ""]
        raise DataError(f"{len(new)} images were added since this run began, first {new[0]}; start a new one")
    return kept


def _own_split(config: TaskConfig, table: Table, seed: int) -> np.ndarray:
    """A stratified split of data without one, or of its training part if it has no 'val'."""
    share = config.data.validation_share
    rows = np.arange(len(table)) if table.split is None else table.rows("train")
    part = table.subset(rows)
    parts = train_val_split(part.matrix, share, seed, joined_groups(part.groups))
    split = np.full(len(table), "train", dtype="<U5") if table.split is None else table.split.copy()
    split[rows] = parts
    held = (parts == "val").mean()
    why = "" if abs(held - share) < 0.02 else f" instead of {share:.0%}, so that rare labels are on both sides"
    kept_together = "" if table.groups is None else ", groups kept together"
    of_what = "no split column, so" if table.split is None else "no split 'val', so of the training images"
    console.say(f"{table.name}: {of_what} {held:.0%} are held out (stratified{kept_together}){why}")
    return split

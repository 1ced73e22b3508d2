"""Labels that training never tells: which they are, and how they are kept out of training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from manylabel.config import ZeroShotConfig
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.labels import PRESENT, UNKNOWN, LabelSpace, known
from manylabel.storage.plain_file import MB, read_text

UNTOLD = "untold"
LARGEST_LIST = 64 * MB


def unseen_labels(config: ZeroShotConfig, table: Table) -> np.ndarray:
    """[N] bool, all False when nothing is unseen. Names of labels that the data does not have are errors."""
    unseen = np.zeros(len(table.labels), bool)
    given = config.unseen.strip()
    if not given:
        return unseen
    if given == UNTOLD:
        unseen = np.asarray(~known(table.matrix[table.rows("train")]).any(axis=0))
        if not unseen.any():
            raise ConfigError(
                f"zero_shot.unseen=untold: the training images of {table.name} say something about every label; "
                "name the unseen ones"
            )
    else:
        for name in label_names(given):
            unseen[_index(table.labels, name)] = True
    if unseen.all():
        raise ConfigError("zero_shot.unseen names every label; nothing is left to train with")
    return unseen


def label_names(given: str, setting: str = "zero_shot.unseen") -> list[str]:
    """Names with commas between them, or a .txt file with one in a line."""
    if is_file_name(given):
        text = read_text(Path(given.strip()), LARGEST_LIST, ConfigError)
        return [line.strip() for line in text.splitlines() if line.strip()]
    return [name.strip() for name in given.split(",") if name.strip()]


def is_file_name(given: str) -> bool:
    return given.strip().endswith((".txt", ".csv"))


def _index(labels: LabelSpace, name: str) -> int:
    try:
        return labels.index(name)
    except DataError as error:
        raise ConfigError(f"zero_shot.unseen: {error}") from error


def without_unseen(config: ZeroShotConfig, table: Table, unseen: np.ndarray) -> Table:
    """The table with training images that say nothing about unseen labels; what else there is, `in_training` decides."""
    if not unseen.any():
        return table
    train = table.rows("train")
    shown = (table.matrix[np.ix_(train, np.flatnonzero(unseen))] == PRESENT).any(axis=1)
    if shown.any() and config.in_training == "error":
        row = train[np.flatnonzero(shown)[0]]
        names = [table.labels.names[i] for i in np.flatnonzero((table.matrix[row] == PRESENT) & unseen)]
        raise DataError(
            f"{table.name}: training image {table.keys[row]} shows the unseen label {names[0]!r}; {int(shown.sum())} of "
            f"{len(train)} training images show one. Hide these labels with --set zero_shot.in_training=hide, "
            "or leave the images out with --set zero_shot.in_training=drop"
        )
    matrix = table.matrix.copy()
    matrix[np.ix_(train, np.flatnonzero(unseen))] = UNKNOWN
    hidden = replace(table, matrix=matrix)
    if config.in_training == "drop" and shown.any():
        if shown.all():
            raise DataError(f"{table.name}: every training image shows an unseen label; nothing is left to train with")
        hidden = hidden.subset(np.setdiff1d(np.arange(len(table)), train[shown]))
    return hidden

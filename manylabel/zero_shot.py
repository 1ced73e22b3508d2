"""Labels that training never tells: which they are, how they are kept out of training, and how well they are recognised."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.config import ZeroShotConfig
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.labels import PRESENT, UNKNOWN, LabelSpace, known, support
from manylabel.metric import average_precision, f1_at_k, mean_defined

UNTOLD = "untold"


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
        path = Path(given)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{setting}: cannot read {path}: {error}") from error
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


def zero_shot_figures(
    scores: np.ndarray, matrix: np.ndarray, unseen: np.ndarray, vectors: np.ndarray | None
) -> dict[str, Any]:
    """ZSL (unseen labels only), GZSL (all labels) and seen labels, with two baselines for the unseen ones; percent."""
    columns = np.flatnonzero(unseen)
    baseline: dict[str, Any] = {"prevalence": _percent(_prevalence(matrix[:, columns]))}
    if vectors is not None:
        nearest = nearest_seen(vectors, unseen)
        borrowed = scores[:, nearest]
        baseline["nearest_seen_label"] = _percent(mean_defined(average_precision(borrowed, matrix[:, columns]))[0])
    return {
        "unseen_labels": len(columns),
        "seen_labels": int((~unseen).sum()),
        "zsl": _figures(scores[:, columns], matrix[:, columns]),
        "gzsl": _figures(scores, matrix),
        "seen": _figures(scores[:, ~unseen], matrix[:, ~unseen]),
        "baselines": baseline,
    }


def nearest_seen(vectors: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """For each unseen label the seen one with the most similar text vector (cosine). [U]"""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    seen = np.flatnonzero(~unseen)
    return seen[(unit[unseen] @ unit[seen].T).argmax(axis=1)]


def _prevalence(matrix: np.ndarray) -> float:
    """What scores without any sense reach: the mean share of positives among the known entries of the scored labels."""
    positives = support(matrix)
    share = positives / np.maximum(known(matrix).sum(axis=0), 1)
    return float(share[positives > 0].mean()) if (positives > 0).any() else math.nan


def _figures(scores: np.ndarray, matrix: np.ndarray) -> dict[str, Any]:
    return {
        "mAP": _percent(mean_defined(average_precision(scores, matrix))[0]),
        "f1_at": {str(k): _percent(f1_at_k(scores, matrix, k).OF1) for k in (3, 5) if k <= scores.shape[1]},
    }


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * float(value), 4)

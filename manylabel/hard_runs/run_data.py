"""The data that a finished run was trained and judged on, as far as it can still be read."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manylabel.compare import Run
from manylabel.config import DataConfig, load_yaml, parse
from manylabel.data.read import read_table
from manylabel.data.read.split_file import split_of_rows
from manylabel.data.table import Table
from manylabel.error import DataError, ManylabelError
from manylabel.labels import LabelSpace, support


@dataclass(frozen=True)
class RunData:
    """`judged` has the images of the scores, in their order; `train` [N] is how many training images have each label."""

    judged: Table
    train: np.ndarray | None


def read_run_data(run: Run) -> tuple[RunData | None, str]:
    """(what there is, or why there is nothing)"""
    assert run.scores is not None
    try:
        return _read(run, run.scores.keys), ""
    except (ManylabelError, OSError) as error:
        return None, str(error)


def _read(run: Run, keys: np.ndarray) -> RunData:
    if run.config is None:
        raise DataError(f"there is no {run.folder / 'config.yaml'}")
    stored = load_yaml(run.config)
    of_task = stored if run.task is None else (stored.get("tasks") or {}).get(run.task) or {}
    data = of_task.get("data") or {}  # alone: other settings may be of another version
    section = parse(DataConfig, data, "data")
    table = read_table(section).with_labels(LabelSpace(tuple(run.labels)))
    place = {str(key): i for i, key in enumerate(table.keys)}
    gone = [str(key) for key in keys if str(key) not in place]
    if gone:
        raise DataError(f"{len(gone)} judged images are no longer in {table.name}, first {gone[0]}")
    made = run.folder / "split.csv"  # the run split the data itself
    if made.is_file():
        table = replace(table, split=split_of_rows(made, table.keys))
    rows = np.array([place[str(key)] for key in keys])
    train = None
    if table.split is not None and "train" in table.split:
        train = support(table.matrix[table.rows("train")]).astype(np.float64)
        unseen = [label.get("unseen", False) for label in run.results["labels"]]
        train[np.array(unseen, bool)] = np.nan  # training never told them, however many images have them
    return RunData(table.subset(rows), train)

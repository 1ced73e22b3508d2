"""Masks that nobody drew cannot be learnt: a detector that gave some all the same would make them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from manylabel import console
from manylabel.config import MultiTaskConfig, Part
from manylabel.data.source import SceneSource
from manylabel.data.table import Table
from manylabel.task import task_of


def with_drawn_masks_only(config: MultiTaskConfig, tables: Mapping[str, Table]) -> MultiTaskConfig:
    """The config with `detector.masks=false` for tasks whose training images have none."""
    tasks = dict(config.tasks)
    for name, task in config.tasks.items():
        if task_of(task).masks and not _has_masks(tables[name]):
            console.say(f"task {name}: {tables[name].name} has boxes without masks; it learns boxes only")
            tasks[name] = replace(task, detector=Part(task.detector.name, {**task.detector.options, "masks": False}))
    return replace(config, tasks=tasks)


def _has_masks(table: Table) -> bool:
    if isinstance(table.source, SceneSource):
        return True
    if table.objects is None:
        return False
    taught = np.isin(table.objects.row, table.rows("train"))
    return any(mask is not None for mask, told in zip(table.objects.masks, taught, strict=True) if told)

"""A trained model for several tasks, judged again: what `manylabel evaluate` does with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from manylabel import console
from manylabel.config import Config, DataConfig, MultiTaskConfig, load_yaml
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import LabelSpace
from manylabel.multitask.bundle import load_multitask_bundle
from manylabel.multitask.classify import ClassificationWork
from manylabel.multitask.find import DetectionWork
from manylabel.multitask.model import judging
from manylabel.multitask.results import describe_tasks
from manylabel.multitask.settings import make_multitask_config, task_of
from manylabel.multitask.work import Parts, TaskWork
from manylabel.run.data_paths import absolute
from manylabel.run.folder import read_split
from manylabel.stop import StopRequest
from manylabel.task import MULTI_LABEL


def evaluate_tasks(run: str | Path, *, data: str | None = None, task: str | None = None) -> dict[str, Any]:
    """Figures of every task (or one) on its val images, from the pixels on; `data` takes the place of the tasks' own."""
    bundle = load_multitask_bundle(Path(run))
    model = bundle.model
    home = Path(run) if (Path(run) / "config.yaml").is_file() else Path(run).parent
    trained = home / "config.yaml"
    known = make_multitask_config(load_yaml(trained)) if trained.is_file() and (home / "bundle").is_dir() else None
    chosen = [task] if task is not None else list(model.tasks)
    with StopRequest() as stop:
        works: dict[str, TaskWork] = {}
        for name in chosen:
            model.number(name)
            table = _table(name, bundle.config, known, data, home, LabelSpace(bundle.tasks[name].labels))
            works[name] = _work(name, bundle.config, table, model, stop)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model.to(device)
        total = sum(len(work.parts.val) for work in works.values())
        with console.counting("judging", total) as advance, judging(model):
            judged = {name: work.judge(model, device, advance) for name, work in works.items()}
    return describe_tasks(model, works, judged, datetime.now(UTC).isoformat(timespec="seconds"))


def _table(
    name: str, config: MultiTaskConfig, known: MultiTaskConfig | None, data: str | None, home: Path, labels: LabelSpace
) -> Table:
    if data is None and known is None:
        raise DataError(f"what this model was trained on is not known here (no run in {home}); give images with --data")
    section = known.tasks[name].data if data is None and known is not None else absolute(DataConfig(path=str(data)))
    table = read_table(section)
    if data is None and (made := read_split(home / "tasks" / name, table)) is not None:
        table = replace(table, split=made)
    if table.split is not None and "val" in table.split:
        table = table.subset(table.rows("val"))
    task = config.tasks[name]
    kind = MULTI_LABEL if task.kind == "detection" else task_of(task)
    return kind.fit(table.with_labels(labels), training=False)


def _work(name: str, config: MultiTaskConfig, table: Table, model: Any, stop: StopRequest) -> TaskWork:
    rows = torch.arange(len(table)).numpy()
    task = replace(config.tasks[name], data=replace(config.tasks[name].data, workers=Config().data.workers))
    bad = BadImages(len(table), 1.0)
    kind = DetectionWork if task.kind == "detection" else ClassificationWork
    work: TaskWork = kind(name, task, table, Parts(rows, rows[:0], rows), bad, stop, model=model, seed=0)
    return work

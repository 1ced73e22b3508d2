"""A trained model for several tasks, judged again: what `manylabel evaluate` does with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from manylabel import console
from manylabel.bundle import find_bundle
from manylabel.config import Config, DataConfig, MultiTaskConfig, load_yaml, parse
from manylabel.data.audit.fingerprint import KnownImages
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import LabelSpace
from manylabel.multitask.bundle import MultiTaskBundle, load_multitask_bundle
from manylabel.multitask.model import judging
from manylabel.multitask.results import describe_tasks
from manylabel.multitask.wording import in_words_of
from manylabel.multitask.work import Judgement, Parts, TaskWork, judge_each
from manylabel.run.data_paths import with_absolute_paths
from manylabel.run.judged_part import TRAINED_ON, judged_part
from manylabel.run.trained_images import NOT_KNOWN, find_trained, overlap_facts, read_trained
from manylabel.stop import StopRequest
from manylabel.training.feed import Seen


def evaluate_tasks(
    run: str | Path,
    *,
    data: str | None = None,
    task: str | None = None,
    split: str | None = None,
    format: str | None = None,
) -> dict[str, Any]:
    """Figures of every task (or one), from the pixels on, by default on val; `data` takes the place of the tasks' own."""
    bundle = load_multitask_bundle(Path(run))
    model = bundle.model
    home = find_bundle(Path(run)).parent
    trained = home / "config.yaml"
    known = parse(MultiTaskConfig, load_yaml(trained)) if trained.is_file() else None
    known_images = read_trained(home)
    tasks = [task] if task is not None else list(model.tasks)
    told: dict[str, dict[str, Any]] = {}
    with StopRequest() as stop:
        works: dict[str, TaskWork] = {}
        seen: dict[str, Seen] = {}
        for name in tasks:
            model.number(name)
            with in_words_of(name):
                section, same = _section(name, known, data, format, home)
                table, part = judged_part(read_table(section), split, home / "tasks" / name, same)
                read = len(table.notes)
                kind = bundle.task(name)
                labels = LabelSpace(bundle.tasks[name].labels)
                table = kind.usable(kind.fit(table.with_labels(labels), training=False))
                notes = [*table.notes[read:], *([NOT_KNOWN] if known_images is None else [])]
                notes += [TRAINED_ON] if same and part == "train" else []
                told[name] = {"split": part or "all", "notes": notes}
                works[name] = _work(name, bundle, table, stop)
                works[name].training_images = bundle.tasks[name].training_images
                seen[name] = works[name].val_feed.watch()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model.to(device)
        total = sum(len(work.parts.val) for work in works.values())
        with console.counting("judging", total) as advance, judging(model):

            def go_on(images: int) -> None:
                advance(images)
                stop.stop_if_asked("stopped while judging; nothing was written")

            judged = judge_each(works, model, device, go_on)
            go_on(0)  # a signal to all processes ends the workers, and with them the images
    trained_on = {name: _trained_on(known_images, seen[name], judged[name]) for name in works}
    results = describe_tasks(model, works, judged, datetime.now(UTC).isoformat(timespec="seconds"), trained_on)
    for name, facts in told.items():
        notes = [*facts["notes"], *results["tasks"][name]["notes"]]
        results["tasks"][name] |= {**facts, "notes": notes}
    return results


def _trained_on(known: KnownImages | None, seen: Seen, judged: Judgement) -> dict[str, Any]:
    return overlap_facts(find_trained(known, seen.fingerprints(judged.rows)))


def _section(
    name: str, known: MultiTaskConfig | None, data: str | None, format: str | None, home: Path
) -> tuple[DataConfig, bool]:
    """(where the images of a task are, whether it was trained on them)"""
    if data is None and known is None:
        raise DataError(f"what this model was trained on is not known here (no run in {home}); give images with --data")
    given = None if data is None else with_absolute_paths(DataConfig(path=data))
    own = None if known is None else known.tasks[name].data
    same = own is not None and (given is None or given.path == own.path)
    section = own if own is not None and same else given
    assert section is not None
    return (section if format is None else replace(section, format=format)), same


def _work(name: str, bundle: MultiTaskBundle, table: Table, stop: StopRequest) -> TaskWork:
    rows = torch.arange(len(table)).numpy()
    own = bundle.config.tasks[name]
    task = replace(own, data=replace(own.data, workers=Config().data.workers))
    bad = BadImages(len(table), 1.0)
    work = TaskWork(name, task, table, Parts(rows, rows[:0], rows), bad, stop, bundle.task(name))
    work.feed(bundle.model.preprocess(name), seed=0)
    return work

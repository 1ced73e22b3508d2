"""Evaluating a finished model: what `manylabel evaluate` and `manylabel.evaluate` do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from manylabel import console
from manylabel.allocator import keep_memory
from manylabel.bundle import Bundle, TaskBundle, check_answer, find_bundle, load_bundle
from manylabel.config import Config, DataConfig, has_one_task, load_yaml, make_config, parse, plain
from manylabel.core.evidence import Scores
from manylabel.data.audit.fingerprint import KnownImages
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import blocks_of
from manylabel.data.table import Table, fingerprint
from manylabel.error import DataError
from manylabel.run.data_paths import with_absolute_paths
from manylabel.run.judged_part import TRAINED_ON, judged_part
from manylabel.run.prepared import task_folder
from manylabel.run.run_results import describe_tasks
from manylabel.run.settings import stored_config
from manylabel.run.task_results import Evaluated, chooses, chosen_here
from manylabel.run.trained_images import NOT_KNOWN, find_trained, overlap_facts, read_trained
from manylabel.stop import StopRequest, unless_stopped
from manylabel.task import told_by_task
from manylabel.task.wording import in_words_of
from manylabel.training.feed import DatasetFeed, Seen
from manylabel.training.history import read_history
from manylabel.training.processes import make_accelerator
from manylabel.training.scoring import Scored, score

BATCH = 64
OBJECTS_AT_ONCE = 8  # images of a batch in which objects are looked for
STOPPED = "stopped while evaluating; nothing was written"
Results = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """Which images of a task are evaluated."""

    table: Table
    feed: DatasetFeed
    seen: Seen
    same: bool  # the run was trained on this data
    split: str | None
    notes: Sequence[str]
    bad: BadImages


def evaluate(
    run: str | Path,
    *,
    data: str | None = None,
    task: str | None = None,
    split: str | None = None,
    settings: Iterable[str] = (),
) -> tuple[Results, dict[str, Any]]:
    """(results, details) of a run or bundle on `data` (default: what it was trained on), from the pixels on.

    `task`: one of several; without it all of them, whose details are in the run's own folder.
    """
    keep_memory()
    bundle = load_bundle(Path(run))
    home = find_bundle(Path(run)).parent
    stored = home / "config.yaml"
    trained = stored_config(load_yaml(stored)) if stored.is_file() else None
    known, several = read_trained(home), not has_one_task(bundle.config)
    names = list(bundle.tasks) if task is None else [bundle.task(task).name]
    accelerator = make_accelerator()
    asked: dict[str, Asked] = {}
    for name in names:
        with in_words_of(name, several):
            asked[name] = _asked(bundle, name, trained, home, data, split, list(settings), accelerator)
    model = bundle.model.to(accelerator.device)
    scored: dict[str, Scored] = {}
    with (
        StopRequest() as stop,
        console.counting("evaluating", sum(len(one.table) for one in asked.values())) as advance,
    ):

        def go_on(images: int) -> None:
            advance(images)
            stop.stop_if_asked(STOPPED)

        for name, one in asked.items():
            with in_words_of(name, several):
                of_task, batches = bundle.tasks[name].task, unless_stopped(one.feed.batches(), stop)
                scored[name] = score(model.task(name), batches, accelerator, of_task, go_on)
                go_on(0)  # a signal to all processes ends the workers, and with them the images
                _check(scored[name], one)
    evaluated = {
        name: _evaluated(bundle.tasks[name], one, scored[name], known, accelerator) for name, one in asked.items()
    }
    if not told_by_task(bundle.config):
        (alone,) = evaluated.values()
        return alone.results(), alone.details(read_history(home / "metrics.jsonl"))
    return describe_tasks(bundle.model, {name: one.summary(bundle.model) for name, one in evaluated.items()}), {}


def images_of_run(bundle: Bundle, name: str, home: Path, split: str | None = None) -> Table:
    """Images that the run in the folder `home` had for one of its tasks, with the bundle's labels; without `split` those
    that it was judged on."""
    stored = home / "config.yaml"
    if not stored.is_file():
        raise DataError(f"there is no run in {home}")
    section, same = _section(bundle.tasks[name], stored_config(load_yaml(stored)), home, None)
    table, _ = judged_part(read_table(parse(DataConfig, section)), split, task_folder(home, bundle.config, name), same)
    one = bundle.tasks[name]
    return one.task.usable(one.task.fit(table.with_labels(one.labels, one.hierarchy), training=False))


def _asked(
    bundle: Bundle,
    name: str,
    trained: Config | None,
    home: Path,
    data: str | None,
    split: str | None,
    settings: list[str],
    accelerator: Accelerator,
) -> Asked:
    one = bundle.tasks[name]
    task = one.task
    section, same = _section(one, trained, home, data)
    config = make_config(None, _of_task(settings, name, list(bundle.tasks)), data=section).only.data
    table, part = judged_part(read_table(config), split, task_folder(home, bundle.config, name), same)
    read_notes = table.notes
    table = task.usable(task.fit(table.with_labels(one.labels, one.hierarchy), training=False))
    for note in table.notes:
        console.say(f"{table.name}: {note}")
    order = EpochBatches(
        np.arange(len(table)),
        OBJECTS_AT_ONCE if task.finds_objects else BATCH,
        shuffle=False,
        rank=accelerator.process_index,
        world=accelerator.num_processes,
        blocks=blocks_of(table.source, table.keys),
    )
    feed = DatasetFeed(task.dataset(table, one.preprocess), order, config.workers)
    bad = BadImages(len(table), config.max_bad_share)
    return Asked(table, feed, feed.watch(), same, part, table.notes[len(read_notes) :], bad)


def _of_task(settings: Sequence[str], name: str, tasks: Sequence[str]) -> list[str]:
    """Those for all tasks, and this task's own without its name."""
    others = tuple(f"tasks.{other}." for other in tasks if other != name)
    return [setting.removeprefix(f"tasks.{name}.") for setting in settings if not setting.startswith(others)]


def _section(bundle: TaskBundle, trained: Config | None, home: Path, data: str | None) -> tuple[dict[str, Any], bool]:
    """(where the images of a task are, whether it was trained on them)"""
    known = None if trained is None else trained.tasks.get(bundle.name)  # it may be the file of another run
    own = None if known is None else known.data
    if data is None and own is None:
        raise DataError(f"what this model was trained on is not known here (no run in {home}); give images with --data")
    same = own is not None and (data is None or with_absolute_paths(DataConfig(path=data)).path == own.path)
    if own is not None and same:
        return plain(own), True
    return {"path": data, "workers": bundle.config.data.workers}, False


def _check(scored: Scored, asked: Asked) -> None:
    asked.bad.add(scored.bad)
    if not len(scored.rows):
        raise DataError("there is no readable image to evaluate the model on")
    if isinstance(scored.evidence, Scores):
        check_answer(torch.from_numpy(scored.scores))


def _notes(bundle: TaskBundle, asked: Asked, here: bool, known: KnownImages | None) -> list[str]:
    """What to mind of these images."""
    notes = list(asked.notes)
    if asked.same and asked.split == "train":
        notes.append(TRAINED_ON)
    if here and chooses(bundle.run, bundle.name):
        notes.append(chosen_here(bundle))
    if known is None:
        notes.append(NOT_KNOWN)
    return notes


def _evaluated(
    bundle: TaskBundle, asked: Asked, scored: Scored, known: KnownImages | None, accelerator: Accelerator
) -> Evaluated:
    here = bool(bundle.fitted_on) and fingerprint(asked.table.keys[scored.rows]) == bundle.fitted_on
    notes = _notes(bundle, asked, here, known)
    overlap = overlap_facts(find_trained(known, asked.seen.fingerprints(scored.rows, accelerator)))
    rows, split = np.arange(len(asked.table)), asked.split or "all"
    return Evaluated(bundle, asked.table, rows, scored, split, len(asked.bad), notes, overlap, fitted_here=here)

"""What leaves a run with several tasks: a folder with everything a prediction needs, and nothing that runs code.

weights.safetensors   transformer, heads, and how many experts each task uses
tasks.json            kind, labels and thresholds of each task
config.yaml           the resolved settings of the run
README.md             model card
checksums.json        sha256 of each of the above
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.bundle import CHECKSUMS, LARGEST_FACTS, as_bundle, check_sums, facts, find_bundle
from manylabel.bundle.card import task_list
from manylabel.config import MultiTaskConfig, dump, load_yaml, parse
from manylabel.core.decision import Activation
from manylabel.error import BundleError
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.work import Judgement, TaskWork
from manylabel.runtime.fork import one_thread_in_children
from manylabel.storage.allowance import Allowance
from manylabel.storage.atomic import sha256, sweep, write_json, write_text
from manylabel.storage.json_text import read_object
from manylabel.storage.tensor_file import read_tensors
from manylabel.task import AnyTask, kind_of, task_of
from manylabel.training.checkpoint import Checkpoint, save_tensors

ENDLESS = ("selection.best", "selection.mark")  # losses that were never measured
FORMAT = 2  # 2: normalised box heads
FILES = ("weights.safetensors", "tasks.json", "config.yaml", "README.md")


@dataclass(frozen=True)
class TaskFacts:
    """What a prediction must know of a task beside its weights."""

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()  # of classification, one for each label; of detection, one for all scores
    activation: Activation | None = None  # what makes scores of a classifier's logits
    training_images: np.ndarray | None = None  # [N] of classification, with each label; earlier versions do not tell

    @classmethod
    def of(cls, work: TaskWork, judged: Judgement) -> TaskFacts:
        thresholds = tuple(work.task.thresholds(judged.judged).tolist())
        return cls(work.table.labels.names, thresholds, work.task.activation, work.training_images)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        told = {} if self.training_images is None else {"training_images": self.training_images.tolist()}
        return {"labels": self.labels, "thresholds": self.thresholds, "activation": self.activation, **told}


@dataclass(frozen=True)
class MultiTaskBundle:
    """A model for several tasks that is ready to be used."""

    model: MultiTaskModel
    config: MultiTaskConfig
    tasks: Mapping[str, TaskFacts]

    def task(self, name: str) -> AnyTask:
        return task_of(self.config.tasks[name], self.tasks[name].activation)


def save_multitask_bundle(
    folder: Path,
    model: MultiTaskModel,
    config: MultiTaskConfig,
    tasks: Mapping[str, TaskFacts],
    results: dict[str, Any],
) -> Path:
    """Write a bundle; the checksums come last, so a half-written one is never taken for whole."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    (folder / CHECKSUMS).unlink(missing_ok=True)
    save_tensors(folder / "weights.safetensors", Checkpoint(dict(model.state_dict()), {}))
    write_json(folder / "tasks.json", {"format": FORMAT, "tasks": {name: one.plain() for name, one in tasks.items()}})
    write_text(folder / "config.yaml", dump(config))
    write_text(folder / "README.md", _card(results))
    write_json(folder / CHECKSUMS, {"format": FORMAT, "sha256": {name: sha256(folder / name) for name in FILES}})
    return folder


def load_multitask_bundle(path: Path | str) -> MultiTaskBundle:
    """A bundle from its folder (or its run's), after its checksums have been compared."""
    one_thread_in_children()
    folder = find_bundle(Path(path))
    check_sums(folder, FILES)
    with as_bundle(folder):
        return _read(folder)


def _read(folder: Path) -> MultiTaskBundle:
    config = parse(MultiTaskConfig, load_yaml(folder / "config.yaml"))
    where = folder / "tasks.json"
    told = read_object(where, BundleError, most=LARGEST_FACTS)
    if told.get("format") != FORMAT:
        raise BundleError("it was made by another one; train it again")
    stored = facts.mapping(told.get("tasks"), f"{where}, tasks")
    facts.check_names(list(stored), list(config.tasks), str(where))
    tasks = {name: _facts(config, name, one, f"{where}, tasks.{name}") for name, one in stored.items()}
    state = read_tensors(folder / "weights.safetensors", BundleError).tensors
    facts.check_weights(state, str(folder / "weights.safetensors"), ENDLESS)
    with Allowance(state):
        model = MultiTaskModel(config, {name: len(one.labels) for name, one in tasks.items()}, load_weights=False)
    model.load_state_dict(state)
    if not (model.std > 0).all():
        raise BundleError(f"{folder / 'weights.safetensors'}, std: every one must be above 0")
    if not ((model.selection.k >= 1) & (model.selection.k <= model.selection.most)).all():
        raise BundleError(f"{folder / 'weights.safetensors'}, selection.k: must be 1 to {model.selection.most} experts")
    return MultiTaskBundle(model.eval(), config, tasks)


def _facts(config: MultiTaskConfig, name: str, value: Any, where: str) -> TaskFacts:
    told = facts.mapping(value, where)
    labels = facts.label_space(told.get("labels"), f"{where}.labels").names
    count = kind_of(config.tasks[name]).threshold_count(len(labels))
    thresholds = facts.thresholds(told.get("thresholds"), count, f"{where}.thresholds")
    task = task_of(config.tasks[name], facts.activation(told.get("activation"), f"{where}.activation"))
    training_images = facts.counts(told.get("training_images"), len(labels), f"{where}.training_images")
    return TaskFacts(labels, thresholds, task.activation, training_images)


def _card(results: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {task['kind']} | {task['labels']} | {task['experts']} | {task['active_parameters'] / 1e6:.2f} M |"
        for name, task in results["tasks"].items()
    )
    return f"""# {results["title"]}

One model for several tasks, made with manylabel on {results["created"]}.

    manylabel predict . photo.jpg --task {next(iter(results["tasks"]))}

| task | kind | labels | experts of a token | parameters in use |
|---|---|---|---|---|
{rows}

{task_list(results["tasks"])}

It knows nothing but its labels, and images like those it was trained on.
"""


__all__ = ["MultiTaskBundle", "TaskFacts", "load_multitask_bundle", "save_multitask_bundle"]

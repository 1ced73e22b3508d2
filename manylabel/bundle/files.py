"""What leaves a run: a folder with everything a prediction needs, and nothing that runs code when it is opened.

weights.safetensors   backbone, neck and head; of several tasks all of them
labels.json           names in the order of the logits, with their thresholds, parents, synonyms and descriptions
preprocess.json       how an image becomes the network's input
tasks/NAME/           these two, of each of several tasks
config.yaml           the resolved settings of the run
README.md             model card: what it is, how good, on what
checksums.json        sha256 of each of the above
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manylabel.bundle import earlier
from manylabel.bundle.bundle import Bundle, TaskBundle
from manylabel.bundle.card import model_card
from manylabel.bundle.task_facts import (
    LABELS_FILE,
    PREPROCESS_FILE,
    TaskFacts,
    labels_facts,
    preprocess_facts,
    read_facts,
)
from manylabel.bundle.weights import check_weights
from manylabel.config import Config, config_of, dump, has_one_task, load_yaml, migrated
from manylabel.error import BundleError, ManylabelError
from manylabel.head import HEADS, NOTHING, LabelKnowledge
from manylabel.model import Model
from manylabel.runtime.fork import one_thread_in_children
from manylabel.storage.allowance import Allowance
from manylabel.storage.atomic import sha256, sweep, write_json, write_text
from manylabel.storage.json_text import read_object
from manylabel.storage.plain_file import MB
from manylabel.storage.tensor_file import read_tensors
from manylabel.task import kind_of, task_of
from manylabel.training.checkpoint import Checkpoint, save_tensors, without_prefix
from manylabel.training.state import today

READING = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    RuntimeError,
    AttributeError,
    AssertionError,
    ManylabelError,
)
FORMAT = 1
WEIGHTS, CONFIG, CARD, CHECKSUMS = "weights.safetensors", "config.yaml", "README.md", "checksums.json"
ENDLESS = tuple(
    f"{of}.{name}" for of in ("selection", "capacity") for name in ("best", "mark")
)  # losses never measured
MOST_PIXELS = 1024 * 1024  # of a blank image that a model is tried with


def find_bundle(path: Path) -> Path:
    """The bundle folder itself, or that of a run."""
    for candidate in (path, path / "bundle"):
        if (candidate / CHECKSUMS).is_file():
            return candidate
    if not path.exists():
        raise BundleError(f"{path} does not exist")
    unfinished = (path / CONFIG).is_file()
    hint = f"; finish the run first: manylabel train --resume --out {path}" if unfinished else ""
    raise BundleError(f"{path} holds no bundle (no {CHECKSUMS}){hint}")


def facts_folder(folder: Path, config: Config, task: str) -> Path:
    """Where the files of a task are."""
    return folder if has_one_task(config) else folder / "tasks" / task


def files_of(config: Config) -> list[str]:
    """What a bundle of these tasks holds beside its checksums."""
    own = [
        (facts_folder(Path(), config, task) / name).as_posix()
        for task in config.tasks
        for name in (LABELS_FILE, PREPROCESS_FILE)
    ]
    return [WEIGHTS, *own, CONFIG, CARD]


def save_bundle(folder: Path, bundle: Bundle, results: Mapping[str, Any]) -> Path:
    """Write a bundle; the checksums come last, so a half-written one is never taken for whole."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    (folder / CHECKSUMS).unlink(missing_ok=True)
    stored = bundle.model.only if has_one_task(bundle.config) else bundle.model
    save_tensors(folder / WEIGHTS, Checkpoint(dict(stored.state_dict()), {}))
    for name, task in bundle.tasks.items():
        place = facts_folder(folder, bundle.config, name)
        place.mkdir(parents=True, exist_ok=True)
        write_json(place / LABELS_FILE, labels_facts(task))
        write_json(place / PREPROCESS_FILE, preprocess_facts(task))
    write_text(folder / CONFIG, dump(bundle.config))
    write_text(folder / CARD, model_card(bundle, results))
    sums = {name: sha256(folder / name) for name in files_of(bundle.config)}
    write_json(folder / CHECKSUMS, {"format": FORMAT, "sha256": sums})
    return folder


KNOWN = re.compile(
    r"(tasks/[^/.]{1,200}/)?(labels|preprocess)\.json|tasks\.json"
)  # beside the three that every bundle has


def check_sums(folder: Path) -> list[str]:
    """Stop unless the files that are listed, and nothing but files of a bundle, are there as they were written."""
    sums = read_object(folder / CHECKSUMS, BundleError, most=MB).get("sha256")
    always = {WEIGHTS, CONFIG, CARD}
    if not isinstance(sums, dict) or always - set(sums) or not all(KNOWN.fullmatch(n) for n in set(sums) - always):
        raise BundleError(f"{folder / CHECKSUMS} does not list the files of a bundle ({', '.join(sorted(always))}, …)")
    for name in sums:
        file = folder / name
        if not file.is_file() or file.is_symlink():
            raise BundleError(f"{file} is missing, or is not a plain file")
        if sha256(file) != sums[name]:
            raise BundleError(f"{file} has another checksum than when it was written; get the bundle again")
    return list(sums)


def load_bundle(path: Path | str) -> Bundle:
    """A bundle from its folder (or its run's), after its checksums have been compared."""
    one_thread_in_children()
    folder = find_bundle(Path(path))
    listed = check_sums(folder)
    with as_bundle(folder):
        config = config_of(migrated(load_yaml(folder / CONFIG)))
        old = earlier.TASKS_FILE in listed
        files = earlier.FILES if old else files_of(config)
        if set(listed) != set(files):
            raise BundleError(f"{CHECKSUMS} does not list the files of a bundle ({', '.join(files)})")
        return _read(folder, config, old)


@contextmanager
def as_bundle(folder: Path) -> Iterator[None]:
    """What goes wrong inside is said of this bundle."""
    try:
        yield
    except READING as error:
        raise BundleError(f"{folder} is not a bundle of this version of manylabel: {brief(error)}") from error


def _read(folder: Path, config: Config, old: bool) -> Bundle:
    state = read_tensors(folder / WEIGHTS, BundleError).tensors
    check_weights(state, str(folder / WEIGHTS), {name for name in state if name.endswith(ENDLESS)})
    told = earlier.read_tasks(folder, config, state) if old else _facts(folder, config)
    state = today(state)
    config = _as_it_was(config, told)
    known = {name: _knowledge(config, name, state, len(one.labels)) for name, one in told.items()}
    pixels = max(one.preprocess.size for one in told.values())
    with Allowance(state, pixels=6 * pixels**2):
        model = Model(
            config, {name: len(one.labels) for name, one in told.items()}, load_weights=False, knowledge=known
        )
    model.load_state_dict({**_since_then(model, state), **state})
    _check_selection(model, folder)
    model.backbone.may_run = True  # now that the weights are known to be of this network
    model.select()
    model.backbone.use(next(iter(told.values())).preprocess)
    model.backbone.sides |= {name: one.preprocess.size for name, one in told.items()}
    _try_out(model.eval())
    return Bundle(model, config, {name: _task(model, config, name, one) for name, one in told.items()})


def _facts(folder: Path, config: Config) -> dict[str, TaskFacts]:
    return {
        name: read_facts(facts_folder(folder, config, name), kind_of(task).threshold_count)
        for name, task in config.tasks.items()
    }


def _as_it_was(config: Config, told: Mapping[str, TaskFacts]) -> Config:
    """With the size that was used, not the wish for a larger one, which these weights may not have taken."""
    own = [one.preprocess.size for name, one in told.items() if config.tasks[name].image_size is None]
    size = own[0] if own else config.backbone.image_size
    return replace(config, backbone=replace(config.backbone, image_size=size, enlarge=1.0))


def _knowledge(config: Config, name: str, state: Mapping[str, Tensor], labels: int) -> LabelKnowledge:
    head = config.tasks[name].head.name
    if head not in HEADS:
        return NOTHING
    known: LabelKnowledge = HEADS.get(head).knowledge_of(without_prefix(f"heads.{name}", dict(state)), labels)
    return known


def _since_then(model: Model, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """How many experts a task uses is among the weights; earlier versions had it in the settings alone."""
    own = model.state_dict()
    return {name: own[name] for name in own if ".selection." in name and name not in state}


def _check_selection(model: Model, folder: Path) -> None:
    if model.backbone.adapts:
        selection = model.backbone.body.selection
        if not ((selection.k >= 1) & (selection.k <= selection.most)).all():
            raise BundleError(f"{folder / WEIGHTS}, selection.k: must be 1 to {selection.most} experts")


def _task(model: Model, config: Config, name: str, told: TaskFacts) -> TaskBundle:
    return TaskBundle(
        model.task(name),
        config,
        told.labels,
        told.thresholds,
        told.fitted_on,
        told.hierarchy,
        told.text_source,
        told.activation or task_of(config.tasks[name]).activation,
        told.training_images,
    )


@torch.no_grad()
def _try_out(model: Model) -> None:
    """A blank image through it: weights may be numbers, and their answer none."""
    for name in model.tasks:
        side = model.backbone.prepared(name).size
        if side * side <= MOST_PIXELS:
            answer = model(torch.zeros(1, 3, side, side), name).answer
            check_answer(answer if isinstance(answer, Tensor) else answer[0].scores)


def check_answer(scores: Tensor) -> Tensor:
    """The same scores, if they are numbers."""
    if not torch.isfinite(scores).all():
        raise BundleError("the model's scores are no numbers: its weights are damaged; get the bundle again")
    return scores


def brief(error: BaseException) -> str:
    """The first lines of what torch says of weights that do not fit, and all of what we say."""
    return "; ".join(line.strip() for line in (str(error) or type(error).__name__).splitlines()[:3])[:500]

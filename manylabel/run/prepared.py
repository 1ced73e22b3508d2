"""What a run trains on and what it trains: tables, the model with what its heads know of their labels, and feeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from accelerate import Accelerator

from manylabel import console
from manylabel.backbone import Backbone
from manylabel.config import AugmentConfig, Config, TaskConfig, has_one_task
from manylabel.data.bad_images import FILE_NAME as BAD_IMAGES
from manylabel.data.bad_images import BadImages
from manylabel.data.same_images import same_images
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.head import LabelKnowledge
from manylabel.model import Model
from manylabel.run.feeds import make_feeds
from manylabel.run.label_knowledge import label_knowledge
from manylabel.run.one_split import kept_split, split_tables
from manylabel.run.training_table import fitted_table, training_table
from manylabel.stop import StopRequest
from manylabel.task import task_of
from manylabel.task.wording import in_words_of
from manylabel.training.phase import Phase, Prepared, first_parts
from manylabel.training.work import Parts, TaskAtWork

HEAD_FIRST = "head_first"  # folder of that phase


@dataclass(frozen=True)
class TaskData:
    """The images of a task, and what is known of its labels."""

    table: Table
    knowledge: LabelKnowledge
    new_split: dict[str, str]  # the split that was made here, if the data had none


def task_folder(folder: Path, config: Config, task: str) -> Path:
    """Where a run keeps what it has for each task."""
    return folder if has_one_task(config) else folder / "tasks" / task


def read_data(config: Config, folder: Path, resume: bool, stop: StopRequest) -> tuple[Config, dict[str, TaskData]]:
    """The data of every task, and the settings as the data allows them."""
    several, tables, kept = not has_one_task(config), dict[str, Table](), dict[str, np.ndarray]()
    for name, task in config.tasks.items():
        with in_words_of(name, several):
            tables[name] = table = fitted_table(task, task_of(task))
            before = kept_split(task_folder(folder, config, name), table) if resume and not _has_val(table) else None
            if before is not None:
                kept[name] = before
    split = split_tables(config, tables, kept, stop)
    found: dict[str, TaskData] = {}
    tasks = dict(config.tasks)
    for name, task in config.tasks.items():
        with in_words_of(name, several):
            kind = task_of(task)
            prepared = training_table(task, kind, split[name].table)
            table = kind.usable(prepared.table)
            tasks[name] = task = kind.fitted_config(task, table, partial(_say, config, name))
            found[name] = TaskData(table, label_knowledge(task, table, prepared.unseen), split[name].new)
    return replace(config, tasks=tasks), found


def _has_val(table: Table) -> bool:
    return table.split is not None and "val" in table.split


def _say(config: Config, name: str, text: str) -> None:
    console.say(text if has_one_task(config) else f"task {name}: {text}")


class WorkMaker:
    """Makes the feeds of a phase when it begins."""

    def __init__(
        self,
        config: Config,
        data: Mapping[str, TaskData],
        model: Model,
        folder: Path,
        accelerator: Accelerator,
        stop: StopRequest,
        resume: bool,
    ) -> None:
        self.config, self.data, self.model, self.folder = config, data, model, folder
        self.accelerator, self.stop = accelerator, stop
        if config.train.adapt.enabled and not model.backbone.adapts:
            console.warn(
                f"{config.backbone.name} as it is set has no experts to choose among: train.adapt changes nothing"
            )
        self.bad: dict[str, BadImages] = {}
        for name, one in data.items():
            with in_words_of(name, not has_one_task(config)):
                self.bad[name] = self._bad_images(name, one.table, resume)
        self.parts = self._parts()

    def _parts(self) -> dict[str, Parts]:
        """Rows of each task to learn from, to decide about capacity by and to evaluate on; an image that is held out of one
        task is held out of all."""
        tables = {name: one.table for name, one in self.data.items()}
        shares = {name: self._held_out(name) for name in tables}
        overlaps = len(tables) > 1 and any(shares.values())
        same = (
            same_images(list(tables.values()), self.stop) if overlaps else [np.arange(len(t)) for t in tables.values()]
        )
        held, known = np.zeros((2, 1 + max(int(ids.max()) for ids in same)), bool)
        for (name, table), ids in zip(tables.items(), same, strict=True):
            instead = "head.adaptive=false" if self.model.heads[name].adapts else "train.adapt.enabled=false"
            with in_words_of(name, not has_one_task(self.config)):
                order = np.where(held[ids], 0, 1 + known[ids])  # held out by others first, learned by others last
                own = Parts.of(table, shares[name], self.config.train.seed, instead, order)
            held[ids[own.held_out]] = known[ids[table.rows("train")]] = True
        return {name: Parts.split(table, held[ids]) for (name, table), ids in zip(tables.items(), same, strict=True)}

    @property
    def adapts(self) -> bool:
        """Whether tasks find out how many experts of the backbone they use."""
        return self.config.train.adapt.enabled and self.model.backbone.adapts

    def _held_out(self, name: str) -> float:
        """Share of a task's training images by whose loss something finds its capacity; 0 = nothing does."""
        share = self.config.train.adapt.held_out or 0.0
        return share if self.adapts or self.model.heads[name].adapts else 0.0

    def _bad_images(self, name: str, table: Table, resume: bool) -> BadImages:
        listed = task_folder(self.folder, self.config, name) / BAD_IMAGES
        share = self.config.tasks[name].data.max_bad_share
        bad = BadImages(len(table), share, listed if self.accelerator.is_main_process else None)
        if resume:
            bad.recall()
        return bad

    def works(self, config: Config, model: Model) -> dict[str, TaskAtWork]:
        """`config` and `model`: as the phase has them."""
        found = {}
        for name, one in self.data.items():
            task, parts = task_of(config.tasks[name]), self.parts[name]
            with in_words_of(name, not has_one_task(config)):
                feeds = make_feeds(
                    config, name, task, model, one.table, parts, self.accelerator, self.bad[name], self.stop
                )
            found[name] = TaskAtWork(
                name,
                task,
                config.tasks[name],
                one.table,
                parts,
                feeds,
                self.bad[name],
                self.stop,
                one.knowledge.unseen,
                task.training_images(one.table.matrix[parts.train]),
            )
        return found

    def phases(self) -> list[Phase]:
        """The head alone, one task alone, all: as the settings ask for them."""
        t, names = self.config.train, list(self.config.tasks)
        best_by = _best_by(self.config)
        alone = t.first_steps if t.first is not None else 0
        found = []
        if t.head_first and self.model.backbone.frozen:
            console.say("the backbone is frozen, so there is nothing that the head could go before (train.head_first)")
        elif t.head_first:
            if not self.model.backbone.may_be_frozen:
                raise ConfigError(
                    f"train.head_first: {self.config.backbone.name} has no trained weights, so a head on it would learn "
                    "from noise; set train.head_first=0"
                )
            early = head_first_config(self.config)
            found.append(
                Phase(
                    lambda: self._head_first(early),
                    names,
                    early.train,
                    early.optimiser,
                    early.schedule,
                    self.folder / HEAD_FIRST,
                    _best_by(early),
                    head_only=True,
                    says="head first: ",
                )
            )
        if alone:
            first = replace(t, steps=alone, evaluate_every=t.evaluate_every)
            own, parts = [str(t.first)], first_parts(self.config)
            found.append(Phase(self._everything, own, first, *parts, self.folder, adapts=self.adapts, alone=True))
        parts = self.config.optimiser, self.config.schedule
        found.append(Phase(self._everything, names, t, *parts, self.folder, best_by, before=alone, adapts=self.adapts))
        return found

    def _everything(self) -> Prepared:
        return Prepared(self.model, self.works(self.config, self.model))

    def _head_first(self, early: Config) -> Prepared:
        """The same necks and heads on a frozen copy of the backbone."""
        frozen = Backbone(early.backbone, tasks=self.model.backbone.sides)
        frozen.load_state_dict(self.model.backbone.state_dict())
        model = self.model.on(frozen.to(self.accelerator.device))
        return Prepared(model, self.works(early, model))


def _best_by(config: Config) -> str | None:
    """Of a run with one task, its own figure; of several what the settings name."""
    if config.train.keep != "best":
        return None
    return config.train.best_by or (config.lead if len(config.tasks) == 1 else None)


def head_first_config(config: Config) -> Config:
    """The same run with a frozen backbone, without augmentation, for `train.head_first` epochs."""
    t = config.train
    train = replace(
        t,
        epochs=t.head_first,
        steps=0,
        head_first=0,
        first=None,
        first_steps=0,
        evaluate_every=0,
        views=0,
        ema=0.0,
        accumulate=1,
        keep="best",
        best_by=t.best_by or ("mean" if len(config.tasks) > 1 else None),
    )
    plain = {name: _plain(task) for name, task in config.tasks.items()}
    return replace(config, tasks=plain, backbone=replace(config.backbone, freeze="frozen"), train=train)


def _plain(task: TaskConfig) -> TaskConfig:
    return replace(task, augment=AugmentConfig())

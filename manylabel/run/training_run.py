"""A run from data to a judged, reusable classifier: what `manylabel train` and `manylabel.train` do.

<out>/config.yaml   run.json   metrics.jsonl   bad_images.csv   split.csv   trained_images.safetensors   checkpoints/
      bundle/       results.json   details.json   scores.npz   report.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from manylabel import console
from manylabel.allocator import keep_memory
from manylabel.backbone import native_bfloat16, resolved
from manylabel.bundle import Bundle, save_bundle
from manylabel.config import Config, dump, make_config
from manylabel.data.bad_images import FILE_NAME as BAD_IMAGES
from manylabel.data.bad_images import BadImages
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.evaluation import describe
from manylabel.head import HEADS
from manylabel.labels import support
from manylabel.loss import LOSSES
from manylabel.metric import Judged
from manylabel.model import Model
from manylabel.neck import NECKS
from manylabel.run.data_paths import with_absolute_paths, without_paths
from manylabel.run.feeds import check_cache, make_feeds
from manylabel.run.folder import (
    fingerprint,
    machine_facts,
    reopen_folder,
    write_outputs,
    write_split,
)
from manylabel.run.head_first import train_head_first
from manylabel.run.judging import chosen_here, details_of, judge_table, model_facts
from manylabel.run.label_knowledge import label_knowledge
from manylabel.run.owned import begin_run, check_folder, claimed
from manylabel.run.recipe_choice import choose_recipe
from manylabel.run.trained_images import Overlap, overlap_facts, remember_trained
from manylabel.run.training_table import training_table
from manylabel.runtime.fork import one_thread_in_children
from manylabel.score_file import write_scores
from manylabel.stop import StopRequest
from manylabel.storage.folder_name import refuse_bytes
from manylabel.task import task_of
from manylabel.text import EMBEDDERS
from manylabel.training.loop import Progress, Trainer
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.processes import from_main, make_accelerator
from manylabel.training.scoring import Scored
from manylabel.training.work import TaskAtWork, Workplace

TRACKERS = ("tensorboard", "mlflow", "wandb")


@dataclass(frozen=True)
class RunResult:
    """What a finished run left behind."""

    folder: Path
    results: dict[str, Any] = field(repr=False)

    @property
    def mAP(self) -> float | None:
        return self.results["mAP"]

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"


def train(
    data: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path,
    recipe: str | None = None,
    transfer: str | None = None,
    settings: Iterable[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    **sections: Mapping[str, Any] | str,
) -> RunResult:
    """Train on `data` (a path, or the whole section as a dict) and leave bundle, results and report in `out`.

    `transfer`: lp (a linear head on a frozen backbone), rm (representation mixup on one), partial (the last layers, from
    cached features), ft (everything). Without it, without a recipe, and without the name of a head or neck or a word
    about what is frozen, recipe `laptop` is used; settings go on top of it.
    Other keywords are sections of the config: head="linear", loss={"name": "asl", "clip": 0}, train={"epochs": 3}.
    """
    keep_memory()
    one_thread_in_children()
    folder = Path(out)
    refuse_bytes(folder)
    given: dict[str, Any] = dict(sections)
    if data is not None:
        given["data"] = dict(data) if isinstance(data, Mapping) else {"path": str(data)}
    settings = list(settings)
    if resume and transfer is not None:
        raise ConfigError("a run is resumed as it was begun; leave --transfer out")
    if resume:
        config = reopen_folder(folder, recipe, settings, given, resolve)
    else:
        config = resolve(make_config(choose_recipe(recipe, transfer, settings, given), settings, **given))
    check = partial(check_folder, folder, [config.data.path, config.data.images], overwrite, resume)
    check()
    with StopRequest() as stop:
        return _Run(folder, config, stop, check).go(resume)


def resolve(config: Config) -> Config:
    """The config with every option of every part written out; wrong names and options are found here, before work."""
    config = replace(
        config,
        backbone=resolved(config.backbone),
        neck=NECKS.resolve(config.neck),
        head=HEADS.resolve(config.head),
        text=EMBEDDERS.resolve(config.text),
        loss=LOSSES.resolve(config.loss),
        optimiser=OPTIMISERS.resolve(config.optimiser),
        schedule=SCHEDULES.resolve(config.schedule),
    )
    config = with_absolute_paths(config)
    check_cache(config)
    task_of(config)
    return config


class _Run:
    """The steps of a run, in order."""

    def __init__(self, folder: Path, config: Config, stop: StopRequest, check: Callable[[], None]) -> None:
        self.folder = folder
        self.config = config
        self.stop = stop
        self.check = check  # that the folder may be used
        self.task = task_of(config)

    def go(self, resume: bool) -> RunResult:
        self.accelerator = self._accelerator()
        console.QUIET = console.QUIET or not self.accelerator.is_main_process
        self.accelerator.wait_for_everyone()  # every process has looked at the folder before one writes to it
        with claimed(self.folder, self.check, self.accelerator.is_main_process):
            return self._go(resume)

    def _go(self, resume: bool) -> RunResult:
        config = self.config
        prepared = training_table(config, self.task, self.folder, resume)
        table = prepared.table
        self.knowledge = label_knowledge(config, table, prepared.unseen)
        set_seed(config.train.seed)
        model = Model(config, len(table.labels), knowledge=self.knowledge)
        model.check()
        everything, trained = model.parameter_counts()
        if config.backbone.weights == "none" and config.backbone.freeze == "frozen":
            console.warn("the backbone is frozen with random weights: only its shape helps")
        console.say(
            f"{config.backbone.name} ({config.backbone.freeze}) + {config.head.name}: {everything / 1e6:.2f} M parameters, "
            f"{trained / 1e6:.3f} M trained"
        )
        if self.accelerator.is_main_process:
            self._begin(table, prepared.new_split, resume)
        overlap = self._remember(table)
        train_rows, val_rows = table.rows("train"), table.rows("val")
        listed = self.folder / BAD_IMAGES if self.accelerator.is_main_process else None
        bad = BadImages(len(train_rows) + len(val_rows), config.data.max_bad_share, listed)
        if resume:
            bad.recall()
        model.to(self.accelerator.device)
        if config.train.head_first and model.backbone.frozen:
            console.say("the backbone is frozen, so there is nothing that the head could go before (train.head_first)")
        elif config.train.head_first and not (resume and any((self.folder / "checkpoints").glob("*"))):
            train_head_first(
                config,
                model,
                self.knowledge,
                table,
                self.folder,
                self.accelerator,
                bad,
                self.stop,
                self.task,
            )
        train_feed, val_feed = make_feeds(config, model, table, self.accelerator, bad, self.stop)
        work = TaskAtWork(self.task, table, train_feed, val_feed, bad, self.knowledge.unseen)
        place = Workplace(self.folder, self.accelerator, self.stop, report=self._show, say=console.say)
        trainer = Trainer(config, model, work, place)
        batches = len(train_feed)
        with console.training(config.train.epochs * batches) as self._bar:
            trainer.fit(resume)
        chosen = trainer.position.best_epoch if config.train.keep == "best" else config.train.epochs
        console.say(f"the weights of epoch {chosen} are kept")
        if chosen == config.train.epochs and config.train.epochs < 50:
            console.say(f"it was still improving: more epochs may help, e.g. --epochs {2 * config.train.epochs}")
        scored = trainer.validate()
        trained_on = from_main(overlap_facts(overlap, scored.rows), self.accelerator)
        result = self._finish(model, table.subset(scored.rows), scored, trainer, len(bad), trained_on)
        self.accelerator.end_training()
        return result

    def _accelerator(self) -> Accelerator:
        trackers = list(self.config.train.trackers)
        for name in trackers:
            if name not in TRACKERS:
                raise ConfigError(f"train.trackers: {name!r} is none of {', '.join(TRACKERS)}")
            try:
                __import__(name)
            except ImportError as error:
                raise ConfigError(f'{name} is not installed: pip install "manylabel[{name}]"') from error
        accelerator = make_accelerator(
            mixed_precision=precision(self.config), log_with=trackers or None, project_dir=str(self.folder)
        )
        if trackers:
            accelerator.init_trackers("manylabel")
        return accelerator

    def _begin(self, table: Table, new_split: dict[str, str], resume: bool) -> None:
        """The first files of a run: only now is it sure that it can begin."""
        facts = {
            **machine_facts(self.accelerator),
            "images": len(table),
            "labels": len(table.labels),
            "notes": list(table.notes),
        }
        begin_run(self.folder, facts, dump(self.config), resume)
        if new_split:
            write_split(self.folder, new_split)

    def _remember(self, table: Table) -> Overlap | None:
        """Keep what this run is trained on; which of its val images are the same, as the main process knows."""
        if not self.accelerator.is_main_process:
            return None
        again = f"manylabel train --resume --out {self.folder}"
        tables = {table.name: (table, self.config.data.workers)}
        return remember_trained(self.folder, tables, self.stop, again)[table.name]

    def _show(self, p: Progress) -> None:
        score = f"{p.goal} {p.value:.2f}  " if p.value is not None else ""
        text = f"epoch {min(p.epoch + 1, p.epochs)}/{p.epochs}  loss {p.loss:.4f}  {score}rate {p.rate:.1e}"
        self._bar(p.epoch * p.batches + p.batch, text)

    def _finish(
        self, model: Model, judged: Table, scored: Scored, trainer: Trainer, bad: int, trained_on: dict[str, Any]
    ) -> RunResult:
        config, scores = self.config, scored.scores
        bundle = Bundle(
            model,
            without_paths(config),
            judged.labels,
            self.task.thresholds(Judged(scores, judged.matrix, unseen=self.knowledge.unseen)),
            model.backbone.preprocess,
            fitted_on=fingerprint(judged.keys),
            hierarchy=judged.hierarchy,
            training_images=support(trainer.table.matrix[trainer.table.rows("train")]),
            text_source=EMBEDDERS.build(config.text).source if model.head.vectors is not None else "",
        )
        figures = judge_table(bundle, judged, scored, fitted_here=True)
        if config.train.keep == "best":
            figures["notes"].append(chosen_here(bundle))
        title = f"{config.head.name} on {config.backbone.name}"
        data = {"name": judged.name, "split": "val", "images": len(judged), "bad_images": bad}
        results = describe(title, data, model_facts(model, config), trained_on | figures)
        if self.accelerator.is_main_process:
            save_bundle(self.folder / "bundle", bundle, results)
            write_scores(self.folder, judged.keys, scores, judged.matrix)
            write_outputs(self.folder, results, details_of(bundle, judged, scored, trainer.history.rows))
        return RunResult(self.folder, results)


def precision(config: Config) -> str:
    """What train.amp=auto means here: bfloat16 where the device computes with it by itself and there is much to do."""
    if config.train.amp != "auto":
        return config.train.amp
    able = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else native_bfloat16()
    return "bf16" if able and config.backbone.freeze != "frozen" else "no"

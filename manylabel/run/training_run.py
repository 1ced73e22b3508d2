"""A run from data to a judged, reusable classifier: what `manylabel train` and `manylabel.train` do.

<out>/config.yaml   run.json   metrics.jsonl   bad_images.csv   split.csv   checkpoints/
      bundle/       results.json   details.json   report.html
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from manylabel import console
from manylabel.allocator import keep_memory
from manylabel.atomic import write_json, write_text
from manylabel.bundle import Bundle, save_bundle
from manylabel.config import Config, dump, make_config
from manylabel.data.bad_images import FILE_NAME as BAD_IMAGES
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import blocks_of
from manylabel.data.split import joined_groups, train_val_split
from manylabel.data.table import Table
from manylabel.data.transform import varies
from manylabel.error import ConfigError, DataError
from manylabel.evaluation import describe, judge
from manylabel.head import HEADS
from manylabel.labels import ABSENT, known, support
from manylabel.loss import LOSSES
from manylabel.metric import fit_thresholds
from manylabel.model import Model
from manylabel.neck import NECKS
from manylabel.run.data_paths import absolute, anonymous
from manylabel.run.folder import (
    check_folder,
    clear_folder,
    fingerprint,
    read_split,
    reopen_folder,
    write_outputs,
    write_split,
)
from manylabel.run.judging import CHOSEN_HERE, details_of, model_facts
from manylabel.training.feature_cache import Announcement, FeatureCache, cached_features
from manylabel.training.feed import FeatureFeed, Feed, PixelFeed
from manylabel.training.loop import Progress, Trainer
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.scoring import make_accelerator
from manylabel.training.stop import StopRequest
from manylabel.version import VERSION

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
    settings: Iterable[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    **sections: Mapping[str, Any] | str,
) -> RunResult:
    """Train on `data` (a path, or the whole section as a dict) and leave bundle, results and report in `out`.

    Other keywords are sections of the config: head="linear", loss={"name": "asl", "clip": 0}, train={"epochs": 3}.
    """
    keep_memory()
    folder = Path(out)
    given: dict[str, Any] = dict(sections)
    if data is not None:
        given["data"] = dict(data) if isinstance(data, Mapping) else {"path": str(data)}
    settings = list(settings)
    if resume:
        config = reopen_folder(folder, recipe, settings, given)
    else:
        config = resolve(make_config(recipe, settings, **given))
        check_folder(folder, config, overwrite)
    with StopRequest() as stop:
        return _Run(folder, config, stop).go(resume)


def resolve(config: Config) -> Config:
    """The config with every option of every part written out; wrong names and options are found here, before work."""
    config = replace(
        config,
        data=absolute(config.data),
        neck=NECKS.resolve(config.neck),
        head=HEADS.resolve(config.head),
        loss=LOSSES.resolve(config.loss),
        optimiser=OPTIMISERS.resolve(config.optimiser),
        schedule=SCHEDULES.resolve(config.schedule),
    )
    if config.train.cache == "on" and not _cacheable(config):
        raise ConfigError(
            "train.cache=on needs a frozen backbone and no augmentation (features are computed only once)"
        )
    return config


def _cacheable(config: Config) -> bool:
    return config.backbone.freeze == "frozen" and not varies(config.augment)


class _Run:
    """The steps of a run, in order."""

    def __init__(self, folder: Path, config: Config, stop: StopRequest) -> None:
        self.folder = folder
        self.config = config
        self.stop = stop
        self.new_split: dict[str, str] = {}

    def go(self, resume: bool) -> RunResult:
        config = self.config
        self.accelerator = self._accelerator()
        console.QUIET = console.QUIET or not self.accelerator.is_main_process
        self.accelerator.wait_for_everyone()  # every process has looked at the folder before one writes to it
        table = self._table(resume)
        set_seed(config.train.seed)
        model = Model(config, len(table.labels))
        everything, trained = model.parameter_counts()
        if config.backbone.weights == "none" and config.backbone.freeze == "frozen":
            console.warn("the backbone is frozen with random weights: only its shape helps")
        console.say(
            f"{config.backbone.name} ({config.backbone.freeze}) + {config.head.name}: {everything / 1e6:.2f} M parameters, "
            f"{trained / 1e6:.3f} M trained"
        )
        if self.accelerator.is_main_process:
            if not resume:
                clear_folder(self.folder)
            self._write_facts(table)
        train_rows, val_rows = table.rows("train"), table.rows("val")
        listed = self.folder / BAD_IMAGES if self.accelerator.is_main_process else None
        bad = BadImages(len(train_rows) + len(val_rows), config.data.max_bad_share, listed)
        if resume:
            bad.recall()
        model.to(self.accelerator.device)
        train_feed, val_feed = self._feeds(model, table, train_rows, val_rows, bad)
        loss = LOSSES.build(config.loss, **_counts(table.matrix[train_rows]))
        trainer = Trainer(
            config,
            model,
            loss,
            table,
            train_feed,
            val_feed,
            self.folder,
            self.accelerator,
            bad,
            self.stop,
            report=self._show,
            say=console.say,
        )
        batches = len(train_feed)
        with console.training(config.train.epochs * batches) as self._bar:
            trainer.fit(resume)
        chosen = trainer.position.best_epoch if config.train.keep == "best" else config.train.epochs
        console.say(f"the weights of epoch {chosen} are kept")
        if chosen == config.train.epochs and config.train.epochs < 50:
            console.say(f"it was still improving: more epochs may help, e.g. --epochs {2 * config.train.epochs}")
        rows, scores = trainer.validate()
        result = self._finish(model, table.subset(rows), scores, trainer.history.rows, len(bad))
        self.accelerator.end_training()
        return result

    def _table(self, resume: bool) -> Table:
        table = read_table(self.config.data)
        for note in table.notes:
            console.say(f"{table.name}: {note}")
        if table.split is None or "val" not in table.split:
            table = replace(table, split=self._own_split(table, resume))
        train = table.matrix[table.rows("train")]
        never = [table.labels.names[i] for i in np.flatnonzero(support(train) == 0)]
        if never:
            shown = ", ".join(never[:5]) + (", …" if len(never) > 5 else "")
            console.warn(f"{len(never)} labels have no training image and cannot be learnt: {shown}")
        one_sided = (train == ABSENT).sum(axis=0) == 0
        if one_sided.all():
            raise DataError(
                f"{table.name}: no label is absent anywhere, so there is nothing to tell apart; if blank cells mean absent, "
                "say so with --set data.blank=absent"
            )
        if one_sided.any():
            console.warn(
                f"{one_sided.sum()} labels are absent from no training image; a model can only say yes to them"
            )
        counts = ", ".join(f"{np.count_nonzero(table.split == part)} {part}" for part in ("train", "val", "test"))
        console.say(f"{table.name}: {len(table)} images ({counts}), {len(table.labels)} labels")
        return table.subset(np.flatnonzero(table.split != "test"))  # the test part is for evaluate alone

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
            mixed_precision=self.config.train.amp, log_with=trackers or None, project_dir=str(self.folder)
        )
        if trackers:
            accelerator.init_trackers("manylabel")
        return accelerator

    def _own_split(self, table: Table, resume: bool) -> np.ndarray:
        """A stratified split of data without one, or of its training part if it has no 'val'; or the one made before."""
        kept = read_split(self.folder, table) if resume else None
        if kept is not None and (kept == "").any():
            new = table.keys[kept == ""]
            raise DataError(f"{len(new)} images were added since this run began, first {new[0]}; start a new one")
        if kept is not None:
            return kept
        share = self.config.data.validation_share
        rows = np.arange(len(table)) if table.split is None else table.rows("train")
        part = table.subset(rows)
        parts = train_val_split(part.matrix, share, self.config.train.seed, joined_groups(part.groups))
        split = np.full(len(table), "train", dtype="<U5") if table.split is None else table.split.copy()
        split[rows] = parts
        held = (parts == "val").mean()
        why = "" if abs(held - share) < 0.02 else f" instead of {share:.0%}, so that rare labels are on both sides"
        kept_together = "" if table.groups is None else ", groups kept together"
        of_what = "no split column, so" if table.split is None else "no split 'val', so of the training images"
        console.say(f"{table.name}: {of_what} {held:.0%} are held out (stratified{kept_together}){why}")
        self.new_split = dict(zip(table.keys.tolist(), split.tolist(), strict=True))
        return split

    def _write_facts(self, table: Table) -> None:
        """The first files of a run: only now is it sure that it can begin."""
        write_text(self.folder / "config.yaml", dump(self.config))
        if self.new_split:
            write_split(self.folder, self.new_split)
        facts = {
            "manylabel": VERSION,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "device": str(self.accelerator.device),
            "processes": self.accelerator.num_processes,
            "images": len(table),
            "labels": len(table.labels),
            "notes": list(table.notes),
        }
        write_json(self.folder / "run.json", facts)

    def _feeds(
        self, model: Model, table: Table, train_rows: np.ndarray, val_rows: np.ndarray, bad: BadImages
    ) -> tuple[Feed, Feed]:
        t, world = self.config.train, self.accelerator
        order = EpochBatches(
            train_rows, t.batch_size, shuffle=True, seed=t.seed, rank=world.process_index, world=world.num_processes
        )
        val = EpochBatches(val_rows, t.batch_size, shuffle=False, rank=world.process_index, world=world.num_processes)
        if t.cache != "off" and _cacheable(self.config):
            with world.main_process_first():
                cache = self._cache(model, table)
            bad.add((str(table.keys[row]), reason) for row, reason in cache.bad.items())
            return FeatureFeed(cache, order), FeatureFeed(cache, val)
        if self.config.backbone.freeze == "frozen":
            console.say("augmentation, or train.cache=off: the frozen features are computed anew in every epoch")
        preprocess, workers = model.backbone.preprocess, self.config.data.workers
        order.blocks = val.blocks = blocks_of(table.source, table.keys)
        return (
            PixelFeed(table, order, preprocess, augment=self.config.augment, workers=workers, seed=t.seed),
            PixelFeed(table, val, preprocess, workers=workers),
        )

    def _cache(self, model: Model, table: Table) -> FeatureCache:
        def announce(a: Announcement) -> None:
            if a.done >= a.images:
                console.say(f"features of {a.images} images are cached ({a.bytes / 1e6:.0f} MB in {a.folder})")
            else:
                left = f", {a.done} of them are done" if a.done else ""
                console.say(f"computing features of {a.images} images{left}: {a.bytes / 1e6:.0f} MB in {a.folder}")

        with console.counting("features", len(table)) as advance:
            return cached_features(
                model,
                table,
                model.backbone.preprocess,
                dtype=self.config.train.cache_dtype,
                workers=self.config.data.workers,
                device=self.accelerator.device,
                stop=self.stop,
                announce=announce,
                advance=advance,
            )

    def _show(self, p: Progress) -> None:
        score = f"mAP {p.mean_ap:.2f}  " if p.mean_ap is not None else ""
        text = f"epoch {min(p.epoch + 1, p.epochs)}/{p.epochs}  loss {p.loss:.4f}  {score}rate {p.rate:.1e}"
        self._bar(p.epoch * p.batches + p.batch, text)

    def _finish(
        self, model: Model, judged: Table, scores: np.ndarray, history: list[dict[str, Any]], bad: int
    ) -> RunResult:
        thresholds = fit_thresholds(scores, judged.matrix)
        figures = judge(scores, judged.matrix, judged.labels, thresholds, fitted_here=True, hierarchy=judged.hierarchy)
        if self.config.train.keep == "best":
            figures["notes"].append(CHOSEN_HERE)
        title = f"{self.config.head.name} on {self.config.backbone.name}"
        data = {"name": judged.name, "split": "val", "images": len(judged), "bad_images": bad}
        results = describe(title, data, model_facts(model, self.config), figures)
        if self.accelerator.is_main_process:
            shared = replace(self.config, data=anonymous(self.config.data))
            bundle = Bundle(
                model,
                shared,
                judged.labels,
                thresholds,
                model.backbone.preprocess,
                fitted_on=fingerprint(judged.keys),
                hierarchy=judged.hierarchy,
            )
            save_bundle(self.folder / "bundle", bundle, results)
            write_outputs(self.folder, results, details_of(judged, scores, history))
        return RunResult(self.folder, results)


def _counts(matrix: np.ndarray) -> dict[str, torch.Tensor]:
    return {
        "positive_counts": torch.from_numpy(support(matrix)),
        "known_counts": torch.from_numpy(known(matrix).sum(axis=0)),
    }

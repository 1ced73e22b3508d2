"""Where a task's batches come from: cached features (and views) of what stays as it is in the backbone, else pixels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from accelerate import Accelerator

from manylabel import console
from manylabel.cache import Announcement, FeatureCache, View, cached_features
from manylabel.config import Config, TaskConfig
from manylabel.data.augment import varies
from manylabel.data.bad_images import BadImages
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import blocks_of
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.model import Model, TaskModel
from manylabel.stop import StopRequest
from manylabel.task import AnyTask, kind_of
from manylabel.training.feed import DatasetFeed, FeatureFeed, Feed, Placed
from manylabel.training.work import Feeds, Parts

MANY = 500  # held-out images from which on they are decoded in processes of their own


def check_cache(config: Config) -> None:
    """Settings of the cache that contradict others are found here, before work."""
    t, tasks = config.train, [task for task in config.tasks.values() if kind_of(task).cached]
    if t.views and not any(varies(task.augment) for task in tasks):
        raise ConfigError(
            f"train.views={t.views} needs an augmentation to draw them with, e.g. --set augment.flip=true"
        )
    if t.cache != "off" and any(task.augment.cutmix and cacheable(config, task) for task in tasks):
        raise ConfigError(
            "augment.cutmix pastes pixels, and cached features have none: use augment.mixup, or set train.cache=off"
        )
    repeated = [task for task in config.tasks.values() if task.augment.repeats > 1]
    if any(not varies(task.augment) or (t.cache != "off" and cacheable(config, task)) for task in repeated):
        raise ConfigError(
            "augment.repeats takes copies of an image that are varied each time it is decoded: set an augmentation, e.g. "
            "augment.flip=true, and train.cache=off where the backbone is frozen; cached features have train.views"
        )
    if t.views and config.backbone.freeze == "full" and t.cache != "off":
        raise ConfigError(
            "train.views are cached features of a backbone that is frozen, or frozen in part; with --full every epoch draws "
            "anew: set train.views=0"
        )
    if t.cache == "on" and not all(cacheable(config, task) for task in config.tasks.values()):
        raise ConfigError(
            "train.cache=on needs a backbone that is frozen, or frozen in part, no augmentation without train.views, and no "
            "detection, which draws its boxes anew"
        )


def cacheable(config: Config, task: TaskConfig) -> bool:
    t, frozen = config.train, config.backbone.freeze != "full"
    return frozen and kind_of(task).cached and (not varies(task.augment) or t.views > 0)


def images_in_a_step(config: Config, task: str, processes: int) -> int:
    """Of one process."""
    size = config.batch_size(task)
    if config.train.batch_of == "process":
        return size
    if size % processes:
        raise ConfigError(f"{size} images in a step (train.batch_of=all) cannot be shared by {processes} processes")
    return size // processes


def make_feeds(
    config: Config,
    name: str,
    task: AnyTask,
    model: Model,
    table: Table,
    parts: Parts,
    accelerator: Accelerator,
    bad: BadImages,
    stop: StopRequest,
) -> Feeds:
    """Batches of one task."""
    t, own, path = config.train, config.tasks[name], model.task(name)
    rank, world = accelerator.process_index, accelerator.num_processes
    size = images_in_a_step(config, name, world)

    def order(rows: np.ndarray, shuffle: bool = False) -> EpochBatches:
        repeats = own.augment.repeats if shuffle else 1
        return EpochBatches(rows, size, shuffle=shuffle, seed=t.seed, rank=rank, world=world, repeats=repeats)

    train, val, held_out = order(parts.train, shuffle=True), order(parts.val), order(parts.held_out)
    if t.cache != "off" and cacheable(config, own):
        every = table.rows("train")
        with accelerator.main_process_first():
            cache = _cache(config, own, path, table, accelerator, stop)
            views = [
                Placed(_cache(config, own, path, table.subset(every), accelerator, stop, number), every)
                for number in range(1, t.views + 1)
                if varies(own.augment)
            ]
        for placed in (Placed(cache, np.arange(len(table))), *views):
            bad.add((str(table.keys[placed.rows[row]]), reason) for row, reason in placed.cache.bad.items())
        found: Feed | None = FeatureFeed(cache, held_out) if len(parts.held_out) else None
        return Feeds(FeatureFeed(cache, train, views), FeatureFeed(cache, val), found)
    if config.backbone.freeze != "full":
        console.say("augmentation, or train.cache=off: the frozen features are computed anew in every epoch")
    train.blocks = val.blocks = held_out.blocks = blocks_of(table.source, table.keys)
    stored, workers = task.dataset(table, path.preprocess), own.data.workers
    few = workers if len(parts.held_out) > MANY else 0
    return Feeds(
        DatasetFeed(task.dataset(table, path.preprocess, own.augment, t.seed), train, workers),
        DatasetFeed(stored, val, workers),
        DatasetFeed(stored, held_out, few) if len(parts.held_out) else None,
    )


def _cache(
    config: Config,
    task: TaskConfig,
    path: TaskModel,
    table: Table,
    accelerator: Accelerator,
    stop: StopRequest,
    number: int = 0,
) -> FeatureCache:
    """Features of the images as they are, or of their view with this number (from 1)."""
    # Views do not depend on the seed of the run: another seed trains on the same ones, in another order.
    # Nor on how images are mixed, which is done later.
    view = View(replace(task.augment, mixup=0.0, cutmix=0.0), number, seed=0) if number else None
    which = f", view {number} of {config.train.views}" if number else ""

    def announce(a: Announcement) -> None:
        if a.done >= a.images:
            console.say(f"features of {a.images} images{which} are cached ({a.bytes / 1e6:.0f} MB in {a.folder})")
        elif a.damaged:
            console.warn(
                f"features of {a.damaged} images{which} in the cache were damaged, so those of {a.images - a.done} are "
                f"computed again with {a.runtime} ({a.folder})"
            )
        else:
            left = f", {a.done} of them are done" if a.done else ""
            place = f"{a.bytes / 1e6:.0f} MB in {a.folder}"
            console.say(f"computing features of {a.images} images{which}{left} with {a.runtime}: {place}")

    with console.counting(f"features{which}", len(table)) as advance:
        return cached_features(
            path,
            table,
            path.preprocess,
            dtype=config.train.cache_dtype,
            view=view,
            runtime=config.train.extract_with,
            workers=task.data.workers,
            device=accelerator.device,
            stop=stop,
            announce=announce,
            advance=advance,
        )

"""Where a run's batches come from: cached features (and views) of what stays as it is in the backbone, else pixels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from accelerate import Accelerator

from manylabel import console
from manylabel.cache import Announcement, FeatureCache, View, cached_features
from manylabel.config import Config
from manylabel.data.augment import varies
from manylabel.data.bad_images import BadImages
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import blocks_of
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.stop import StopRequest
from manylabel.training.feed import FeatureFeed, Feed, PixelFeed, Placed


def check_cache(config: Config) -> None:
    """Settings of the cache that contradict others are found here, before work."""
    t, a = config.train, config.augment
    if t.views and not varies(a):
        raise ConfigError(
            f"train.views={t.views} needs an augmentation to draw them with, e.g. --set augment.flip=true"
        )
    if a.cutmix and t.cache != "off" and cacheable(config):
        raise ConfigError(
            "augment.cutmix pastes pixels, and cached features have none: use augment.mixup, or set train.cache=off"
        )
    if t.views and config.backbone.freeze == "full" and t.cache != "off":
        raise ConfigError(
            "train.views are cached features of a backbone that is frozen, or frozen in part; with --full every epoch draws "
            "anew: set train.views=0"
        )
    if t.cache == "on" and not cacheable(config):
        raise ConfigError(
            "train.cache=on needs a backbone that is frozen, or frozen in part, and no augmentation without train.views"
        )


def cacheable(config: Config) -> bool:
    return config.backbone.freeze != "full" and (not varies(config.augment) or config.train.views > 0)


def make_feeds(
    config: Config, model: Model, table: Table, accelerator: Accelerator, bad: BadImages, stop: StopRequest
) -> tuple[Feed, Feed]:
    """Batches for training and for validation."""
    t, rank, world = config.train, accelerator.process_index, accelerator.num_processes
    train_rows, val_rows = table.rows("train"), table.rows("val")
    order = EpochBatches(train_rows, t.batch_size, shuffle=True, seed=t.seed, rank=rank, world=world)
    val = EpochBatches(val_rows, t.batch_size, shuffle=False, rank=rank, world=world)
    if t.cache != "off" and cacheable(config):
        with accelerator.main_process_first():
            cache = _cache(config, model, table, accelerator, stop)
            views = [
                Placed(_cache(config, model, table.subset(train_rows), accelerator, stop, number), train_rows)
                for number in range(1, t.views + 1)
            ]
        for placed in (Placed(cache, np.arange(len(table))), *views):
            bad.add((str(table.keys[placed.rows[row]]), reason) for row, reason in placed.cache.bad.items())
        return FeatureFeed(cache, order, views), FeatureFeed(cache, val)
    if config.backbone.freeze != "full":
        console.say("augmentation, or train.cache=off: the frozen features are computed anew in every epoch")
    preprocess, workers = model.backbone.preprocess, config.data.workers
    order.blocks = val.blocks = blocks_of(table.source, table.keys)
    return (
        PixelFeed(table, order, preprocess, augment=config.augment, workers=workers, seed=t.seed),
        PixelFeed(table, val, preprocess, workers=workers),
    )


def _cache(
    config: Config, model: Model, table: Table, accelerator: Accelerator, stop: StopRequest, number: int = 0
) -> FeatureCache:
    """Features of the images as they are, or of their view with this number (from 1)."""
    # Views do not depend on the seed of the run: another seed trains on the same ones, in another order.
    # Nor on how images are mixed, which is done later.
    view = View(replace(config.augment, mixup=0.0, cutmix=0.0), number, seed=0) if number else None
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
            model,
            table,
            model.backbone.preprocess,
            dtype=config.train.cache_dtype,
            view=view,
            runtime=config.train.extract_with,
            workers=config.data.workers,
            device=accelerator.device,
            stop=stop,
            announce=announce,
            advance=advance,
        )

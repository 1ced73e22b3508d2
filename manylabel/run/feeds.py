"""Where a run's batches come from: cached features (and views of them) when the backbone is frozen, else pixels."""

from __future__ import annotations

import numpy as np
from accelerate import Accelerator

from manylabel import console
from manylabel.config import Config
from manylabel.data.bad_images import BadImages
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import blocks_of
from manylabel.data.table import Table
from manylabel.data.transform import varies
from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.training.feature_cache import Announcement, FeatureCache, View, cached_features
from manylabel.training.feed import FeatureFeed, Feed, PixelFeed, Placed
from manylabel.training.stop import StopRequest


def check_cache(config: Config) -> None:
    """Settings of the cache that contradict others are found here, before work."""
    t, a = config.train, config.augment
    if t.views and not varies(a):
        raise ConfigError(
            f"train.views={t.views} needs an augmentation to draw them with, e.g. --set augment.flip=true"
        )
    if t.views and (a.mixup or a.cutmix):
        raise ConfigError(
            "cached views (train.views) are of single images: go without augment.mixup and cutmix, or set train.views=0"
        )
    if t.views and (config.backbone.freeze != "frozen" or t.cache == "off"):
        raise ConfigError("train.views needs a frozen backbone and its cache (--frozen, train.cache=auto)")
    if t.cache == "on" and not cacheable(config):
        raise ConfigError(
            "train.cache=on needs a frozen backbone, and no augmentation without train.views (features are computed once)"
        )


def cacheable(config: Config) -> bool:
    return config.backbone.freeze == "frozen" and (not varies(config.augment) or config.train.views > 0)


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
    if config.backbone.freeze == "frozen":
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
    view = View(config.augment, number, seed=0) if number else None
    which = f", view {number} of {config.train.views}" if number else ""

    def announce(a: Announcement) -> None:
        if a.done >= a.images:
            console.say(f"features of {a.images} images{which} are cached ({a.bytes / 1e6:.0f} MB in {a.folder})")
        else:
            left = f", {a.done} of them are done" if a.done else ""
            console.say(f"computing features of {a.images} images{which}{left}: {a.bytes / 1e6:.0f} MB in {a.folder}")

    with console.counting(f"features{which}", len(table)) as advance:
        return cached_features(
            model,
            table,
            model.backbone.preprocess,
            dtype=config.train.cache_dtype,
            view=view,
            workers=config.data.workers,
            device=accelerator.device,
            stop=stop,
            announce=announce,
            advance=advance,
        )

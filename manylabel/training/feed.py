"""Where batches come from: pixels that are decoded now, or features that were computed before. The loop does not care."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch

from manylabel.config import AugmentConfig
from manylabel.data.dataset import Batch, ImageDataset, pixel_loader
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.data.transform import evaluation_transform, needed_side, training_transform
from manylabel.preprocess import Preprocess
from manylabel.training.feature_cache import FeatureCache


class Feed(Protocol):
    """Batches of one split."""

    def batches(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on."""

    def __len__(self) -> int:
        """Batches in an epoch, of this process."""


class PixelFeed:
    """Decodes and transforms images in worker processes, which live from epoch to epoch."""

    def __init__(
        self,
        table: Table,
        order: EpochBatches,
        preprocess: Preprocess,
        *,
        augment: AugmentConfig | None = None,
        workers: int = 2,
        seed: int = 0,
    ) -> None:
        if augment is None:
            dataset = ImageDataset(table, evaluation_transform(preprocess), needed_side(preprocess))
        else:
            transform = training_transform(preprocess, augment)
            dataset = ImageDataset(table, transform, needed_side(preprocess, augment), seed, random=True)
        self.order = order
        self.loader = pixel_loader(dataset, order, workers, pin=torch.cuda.is_available())

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        self.order.epoch, self.order.start = epoch, start
        yield from self.loader


class FeatureFeed:
    """Reads features from the cache; the backbone is not touched."""

    def __init__(self, cache: FeatureCache, order: EpochBatches) -> None:
        self.cache = cache
        self.order = order
        order.rows = cache.usable(order.rows)

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        self.order.epoch, self.order.start = epoch, start
        for pairs in self.order:
            rows = np.array([row for _, row in pairs])
            yield Batch(self.cache.features(rows), torch.from_numpy(rows))

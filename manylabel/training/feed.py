"""Where batches come from: pixels that are decoded now, or features that were computed before. The loop does not care."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from manylabel.cache import FeatureCache
from manylabel.config import AugmentConfig
from manylabel.data.audit.fingerprint import FINGERPRINT
from manylabel.data.dataset import Batch, ImageDataset, image_dataset, pixel_loader
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.features import Features
from manylabel.preprocess import Preprocess


class Feed(Protocol):
    """Batches of one split."""

    def batches(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on."""

    def __len__(self) -> int:
        """Batches in an epoch, of this process."""


class Seen:
    """By what the images of a feed are known, wherever they lie: noted as its batches pass."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []  # rows, and FINGERPRINTs of them

    def note(self, batch: Batch) -> Batch:
        if batch.fingerprints is not None:
            self.parts.append((batch.rows.numpy(), batch.fingerprints))
        return batch

    def fingerprints(self, rows: np.ndarray, accelerator: Accelerator | None = None) -> np.ndarray:
        """Of these rows, which have passed in this process or another one. [len(rows)] FINGERPRINT"""
        several = accelerator is not None and accelerator.num_processes > 1
        parts = gather_object(self.parts) if several else self.parts
        passed = np.concatenate([np.empty(0, np.int64), *(part for part, _ in parts)])
        found = np.concatenate([np.empty(0, FINGERPRINT), *(part for _, part in parts)])
        order = np.argsort(passed, kind="stable")
        return found[order[np.searchsorted(passed, rows, sorter=order)]]


class ImageFeed(Feed, Protocol):
    """A feed that decodes images."""

    def watch(self) -> Seen:
        """From now on, note what images pass."""


class DatasetFeed:
    """Decodes and transforms images in worker processes, which live from epoch to epoch."""

    def __init__(self, dataset: ImageDataset, order: EpochBatches, workers: int = 2) -> None:
        self.order, self.dataset, self.seen = order, dataset, Seen()
        self.loader = pixel_loader(dataset, order, workers, pin=torch.cuda.is_available())

    def watch(self) -> Seen:
        self.dataset.fingerprints = True
        return self.seen

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        self.order.epoch, self.order.start = epoch, start
        for batch in self.loader:
            if batch.wrong is not None:
                raise batch.wrong
            yield self.seen.note(batch)


class PixelFeed(DatasetFeed):
    """The images of a table for a classifier."""

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
        super().__init__(image_dataset(table, preprocess, augment, seed), order, workers)


class FeatureFeed:
    """Reads features from the cache; the backbone is not touched.

    With several views of the images an epoch takes one of each image, the next epoch the next: in `1 + views` epochs an
    image has been seen in every way.
    """

    def __init__(self, cache: FeatureCache, order: EpochBatches, views: Sequence[Placed] = ()) -> None:
        self.ways = [Placed(cache, np.arange(cache.count)), *views]
        self.order = order
        for way in self.ways:
            order.rows = way.usable(order.rows)
        self.first = np.random.default_rng(order.seed).integers(len(self.ways), size=cache.count)

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        self.order.epoch, self.order.start = epoch, start
        for pairs in self.order:
            rows = np.array([row for _, row in pairs])
            yield Batch(self._features(rows, epoch), torch.from_numpy(rows))

    def _features(self, rows: np.ndarray, epoch: int) -> Features:
        if len(self.ways) == 1:
            return self.ways[0].cache.features(rows)
        way = (self.first[rows] + epoch) % len(self.ways)
        stages: dict[str, torch.Tensor] = {}
        for number in np.unique(way):
            mine = way == number
            for name, part in self.ways[number].read(rows[mine]).items():
                if name not in stages:
                    stages[name] = torch.empty(len(rows), *part.shape[1:])
                stages[name][torch.from_numpy(mine)] = part
        return Features(stages)


@dataclass(frozen=True)
class Placed:
    """A cache of some rows of a table: `rows` says which, in its own order."""

    cache: FeatureCache
    rows: np.ndarray

    def read(self, rows: np.ndarray) -> dict[str, torch.Tensor]:
        return self.cache.read(np.searchsorted(self.rows, rows))

    def usable(self, rows: np.ndarray) -> np.ndarray:
        """Those of `rows` that have features here."""
        return rows[~np.isin(rows, self.rows[list(self.cache.bad)])] if self.cache.bad else rows

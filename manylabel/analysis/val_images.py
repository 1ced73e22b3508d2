"""The first val images of a task as pixels, whatever it is trained from."""

from __future__ import annotations

from collections.abc import Iterator

from manylabel.data.dataset import Batch
from manylabel.data.sampler import EpochBatches
from manylabel.model import Model
from manylabel.training.feed import DatasetFeed, FeatureFeed
from manylabel.training.work import TaskAtWork

BATCH = 32


def val_batches(work: TaskAtWork, model: Model, images: int) -> Iterator[Batch]:
    """Batches with an image in them, until so many images were seen."""
    feed = work.feeds.val
    if isinstance(feed, FeatureFeed):
        order = EpochBatches(work.parts.val[:images], BATCH, shuffle=False)
        feed = DatasetFeed(work.task.dataset(work.table, model.backbone.prepared(work.name)), order, 0)
    seen = 0
    for batch in feed.batches():
        if len(batch):
            yield batch
            seen += len(batch)
        if seen >= images:
            return

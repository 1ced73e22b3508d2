"""A task at work: its images, its losses, its figures. The training loop sees all tasks through this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor

from manylabel.backbone.moe_vit import Routes
from manylabel.config import TaskConfig
from manylabel.data.bad_images import BadImages
from manylabel.data.dataset import Batch
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.wording import in_words_of
from manylabel.stop import StopRequest, unless_stopped
from manylabel.training.feed import Feed

Advance = Callable[[int], None]
MANY = 500  # held-out images from which on they are decoded in processes of their own


@dataclass(frozen=True)
class Judgement:
    """How good a task is on its val images."""

    goal: str  # the name of the figure that counts
    value: float | None  # of it, percent; None where it is undefined
    figures: dict[str, Any] = field(default_factory=dict)  # all of them, percent
    threshold: float | None = None  # of detection: the lowest score of an object that is worth reporting
    scores: np.ndarray | None = None  # [n, N] of classification, in the order of `rows`
    rows: np.ndarray | None = None


@dataclass(frozen=True)
class Parts:
    """Rows of a table: to learn from, to choose the number of experts by, and to judge by."""

    train: np.ndarray
    held_out: np.ndarray
    val: np.ndarray

    @classmethod
    def of(cls, table: Table, share: float, seed: int) -> Parts:
        """A fixed part of the training images is held out; without adaptive selection (share 0) all of them are learnt."""
        rows = np.random.default_rng([seed, 1]).permutation(table.rows("train"))
        count = round(share * len(rows))
        if share and not 1 <= count < len(rows):
            raise DataError(
                f"{table.name}: {len(rows)} training images are too few to hold out {share:.1%} of them; set "
                "selection.held_out higher, or selection.adaptive=false"
            )
        return cls(np.sort(rows[count:]), np.sort(rows[:count]), table.rows("val"))


class TaskWork(ABC):
    """Made for one task of a run; `weight` is that of its loss."""

    def __init__(
        self, name: str, config: TaskConfig, table: Table, parts: Parts, bad: BadImages, stop: StopRequest
    ) -> None:
        self.name, self.config, self.table, self.parts, self.bad, self.stop = name, config, table, parts, bad, stop
        self.world = 1  # processes
        self.train_feed: Feed
        self.held_out_feed: Feed
        self.val_feed: Feed

    @property
    def held_out_workers(self) -> int:
        """Processes that decode the held-out images: a few images are not worth any."""
        return self.config.data.workers if len(self.parts.held_out) > MANY else 0

    def gathered(self, found: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """(row, what was found) of all processes, in the order of the rows."""
        everywhere = gather_object(found) if self.world > 1 else found
        return sorted(everywhere, key=lambda pair: pair[0])

    def orders(self, seed: int, rank: int, world: int) -> tuple[EpochBatches, EpochBatches, EpochBatches]:
        size, self.world = self.config.batch_size, world
        return (
            EpochBatches(self.parts.train, size, shuffle=True, seed=seed, rank=rank, world=world),
            EpochBatches(self.parts.held_out, size, shuffle=False, rank=rank, world=world),
            EpochBatches(self.parts.val, size, shuffle=False, rank=rank, world=world),
        )

    def begin(self, model: MultiTaskModel) -> None:  # noqa: B027 - most tasks know nothing
        """What a fresh model of this task may know of its training images before the first step."""

    def batches(self, done: int) -> Iterator[Batch]:
        """Training batches without end, after so many that were taken before."""
        epoch, start = divmod(done, len(self.train_feed))
        while True:
            yield from unless_stopped(self.train_feed.batches(epoch, start), self.stop)
            if self.stop.signal is not None:
                return
            epoch, start = epoch + 1, 0

    def none_readable(self) -> DataError:
        return DataError(f"task {self.name}: none of its {len(self.parts.val)} images to judge by can be read")

    @abstractmethod
    def losses(
        self, model: MultiTaskModel, batch: Batch, device: torch.device, routes: Routes | None
    ) -> dict[str, Tensor]:
        """The task's own losses of a batch, by name; their sum is what is learnt from."""

    @abstractmethod
    def judge(self, model: MultiTaskModel, device: torch.device, advance: Advance = lambda _: None) -> Judgement:
        """Figures on the val images; the model is in evaluation mode."""

    def held_out_loss(self, model: MultiTaskModel, device: torch.device) -> float:
        """Mean loss of the held-out images of all processes, by which the number of experts is chosen."""
        total, images = 0.0, 0
        for batch in unless_stopped(self.held_out_feed.batches(), self.stop):
            if len(batch):
                losses = self.losses(model, batch, device, None)
                total += float(torch.stack(list(losses.values())).sum()) * len(batch)
                images += len(batch)
        if self.world > 1:
            sums = torch.tensor([total, images], dtype=torch.float64, device=device)
            torch.distributed.all_reduce(sums)
            total, images = sums.tolist()
        if not images:
            raise DataError(f"task {self.name}: none of the {len(self.parts.held_out)} held-out images can be read")
        return total / images


def judge_each(
    works: Mapping[str, TaskWork], model: MultiTaskModel, device: torch.device, advance: Advance = lambda _: None
) -> dict[str, Judgement]:
    judged: dict[str, Judgement] = {}
    for name, work in works.items():
        with in_words_of(name):
            judged[name] = work.judge(model, device, advance)
    return judged

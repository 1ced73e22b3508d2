"""What a loop trains, and where: the parts that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from manylabel.config import TaskConfig
from manylabel.data.bad_images import BadImages
from manylabel.data.dataset import Batch
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import never_trained
from manylabel.model import Model
from manylabel.stop import StopRequest, unless_stopped
from manylabel.task import AnyTask, total_of
from manylabel.training.feed import Feed


@dataclass(frozen=True)
class Parts:
    """Rows of a table: to learn from, to decide about capacity by, and to evaluate on."""

    train: np.ndarray
    held_out: np.ndarray
    val: np.ndarray

    @classmethod
    def of(
        cls,
        table: Table,
        share: float,
        seed: int,
        instead: str = "train.adapt.enabled=false",
        order: np.ndarray | None = None,
    ) -> Parts:
        """A fixed share of the training images is held out; 0 = all of them are learned. `instead`: the setting that does
        without. `order` [n]: which images are held out before others, those with 0 in any case."""
        held = np.zeros(len(table), bool)
        if share:
            rows = np.random.default_rng([seed, 1]).permutation(table.rows("train"))
            count = round(share * len(rows))
            if order is not None:
                rows = rows[np.argsort(order[rows], kind="stable")]
                count = max(count, int((order[rows] == 0).sum()))
            if not 1 <= count < len(rows):
                raise DataError(
                    f"{table.name}: {len(rows)} training images are too few to hold out {share:.1%} of them; set "
                    f"train.adapt.held_out higher, or {instead}"
                )
            held[rows[:count]] = True
        return cls.split(table, held)

    @classmethod
    def split(cls, table: Table, held: np.ndarray) -> Parts:
        """`held` [n] bool: the training images that are held out."""
        train = table.rows("train")
        return cls(train[~held[train]], train[held[train]], table.rows("val"))


@dataclass(frozen=True)
class Feeds:
    """Where the batches of a task come from."""

    train: Feed
    val: Feed
    held_out: Feed | None = None  # of images whose loss decides about capacity


@dataclass(frozen=True)
class TaskAtWork:
    """A task with its images."""

    name: str
    task: AnyTask
    config: TaskConfig
    table: Table
    parts: Parts
    feeds: Feeds
    bad_images: BadImages
    stop: StopRequest
    unseen: np.ndarray | None = None  # [N] bool: labels that must not choose the weights
    training_images: np.ndarray | None = field(default=None, repr=False)  # [N] with each label

    def learning(self, say: Callable[[str], None]) -> TaskAtWork:
        """Able to give targets and losses."""
        task = self.task.learning(self.config, self.table, self.parts.train, say)
        return replace(self, task=task if self.unseen is None else task.without(self.unseen))

    @property
    def never_trained(self) -> np.ndarray:
        """[N] bool: labels without a training image, which must not choose the weights either."""
        return never_trained(self.training_images, self.unseen, len(self.table.labels))

    def batches(self, done: int) -> Iterator[Batch]:
        """Training batches without end, after so many that were taken before."""
        whole = len(self.feeds.train)
        epoch, place = divmod(done, whole)
        while True:
            for batch in unless_stopped(self.feeds.train.batches(epoch, place), self.stop):
                yield batch
                place += 1
            if place < whole:  # a signal has ended the workers; between epochs all processes stop together
                return
            epoch, place = epoch + 1, 0

    def held_out_loss(self, model: Model, device: torch.device, processes: int = 1) -> float:
        """Mean loss of the held-out images of all processes; the model is in evaluation mode."""
        assert self.feeds.held_out is not None
        total, images = 0.0, 0
        for batch in unless_stopped(self.feeds.held_out.batches(), self.stop):
            if self.stop.signal is not None:
                break
            if len(batch):
                targets = self.task.targets(batch, device)
                losses = self.task.losses(model(targets.inputs, self.name, targets.objects), targets)
                total += float(total_of(losses)) * len(batch)
                images += len(batch)
        if processes > 1:
            sums = torch.tensor([total, images], dtype=torch.float64, device=device)
            torch.distributed.all_reduce(sums)
            total, images = sums.tolist()
        if not images and self.stop.signal is None:
            raise DataError(f"none of the {len(self.parts.held_out)} held-out images can be read")
        return total / max(images, 1)


@dataclass(frozen=True)
class Workplace:
    """Where a run is kept, the processes that work on it, and how it is stopped and watched."""

    folder: Path
    accelerator: Accelerator
    stop: StopRequest
    report: Callable[[Any], None] = lambda _: None  # a Progress after every step
    say: Callable[[str], None] = lambda _: None
    pause: Callable[[], None] = lambda: None  # nothing is shown now: others may want to

    @property
    def again(self) -> str:
        """The command that goes on."""
        return f"manylabel train --resume --out {self.folder}"

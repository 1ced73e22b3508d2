"""A task at work: its images, its losses, its figures. The training loop sees all tasks through this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor

from manylabel import console
from manylabel.config import TaskConfig
from manylabel.data.bad_images import BadImages
from manylabel.data.dataset import Batch
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.error import DataError, TrainingError
from manylabel.labels import never_trained
from manylabel.metric import Judged, JudgedObjects, measured
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.wording import in_words_of
from manylabel.preprocess import Preprocess
from manylabel.stop import StopRequest, unless_stopped
from manylabel.task import AnyTask, Evidence, task_of, together, total_of
from manylabel.training.feed import DatasetFeed, Feed, ImageFeed

Advance = Callable[[int], None]
Costs = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]  # of the task, and of the network that all share
MANY = 500  # held-out images from which on they are decoded in processes of their own


@dataclass(frozen=True)
class Judgement:
    """How good a task is on its val images."""

    goal: str  # the name of the figure that counts
    value: float | None  # of it, percent; None where it is undefined
    figures: dict[str, Any]  # all of them, percent
    judged: Judged | JudgedObjects  # what they were computed of
    rows: np.ndarray  # of the table that could be read and were judged
    never_trained: tuple[dict[str, Any], ...] = ()  # labels that no training image had, which count in no mean


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


class TaskWork:
    """Made for one task of a run."""

    def __init__(
        self,
        name: str,
        config: TaskConfig,
        table: Table,
        parts: Parts,
        bad: BadImages,
        stop: StopRequest,
        task: AnyTask | None = None,
        world: int = 1,
    ) -> None:
        """`task`: of a bundle, which remembers what its loss was; None = as the config says."""
        self.name, self.config, self.table, self.parts, self.bad, self.stop = name, config, table, parts, bad, stop
        self.task = task_of(config) if task is None else task
        self.world = world  # processes
        self.training_images = self.task.training_images(table.matrix[parts.train])
        self.train_feed: Feed
        self.held_out_feed: Feed
        self.val_feed: ImageFeed

    def feed(self, preprocess: Preprocess, seed: int, rank: int = 0) -> None:
        """Begin to decode the images of this process, the model's way."""
        c, stored = self.config, self.task.dataset(self.table, preprocess)
        varied = self.task.dataset(self.table, preprocess, c.augment, seed)
        size, world = c.batch_size, self.world
        train = EpochBatches(self.parts.train, size, shuffle=True, seed=seed, rank=rank, world=world)
        held_out = EpochBatches(self.parts.held_out, size, shuffle=False, rank=rank, world=world)
        val = EpochBatches(self.parts.val, size, shuffle=False, rank=rank, world=world)
        self.train_feed = DatasetFeed(varied, train, c.data.workers)
        self.held_out_feed = DatasetFeed(stored, held_out, self.held_out_workers)
        self.val_feed = DatasetFeed(stored, val, c.data.workers)

    @property
    def held_out_workers(self) -> int:
        """Processes that decode the held-out images: a few images are not worth any."""
        return self.config.data.workers if len(self.parts.held_out) > MANY else 0

    def begin(self, model: MultiTaskModel) -> None:
        """Before the first step: what is wrong with loss or objects is found, and a fresh head hears what it may know."""
        self.task = self.task.learning(self.config, self.table, self.parts.train, console.say)
        self.task.prepare(model.head(self.name), self.table, self.parts.train)

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

    def losses(self, model: MultiTaskModel, batch: Batch, device: torch.device) -> Costs:
        """The task's own losses of a batch, by name, and what the shared network costs beside."""
        mixes = model.training and self.task.mixes
        rng = np.random.default_rng(int(torch.randint(2**31, ()))) if mixes else None
        targets = self.task.targets(batch, device, rng)
        output = model(targets.inputs, self.name, targets.objects)
        return self.task.losses(output, targets), output.costs

    def judge(self, model: MultiTaskModel, device: torch.device, advance: Advance = lambda _: None) -> Judgement:
        """Figures on the val images; the model is in evaluation mode."""
        said: list[Evidence] = []
        for batch in unless_stopped(self.val_feed.batches(), self.stop):
            self.bad.add(batch.bad)
            if len(batch):
                said.append(self.task.evidence(model(batch.pixels.to(device), self.name), batch))
            advance(len(batch) + len(batch.bad))
        said = gather_object(said) if self.world > 1 else said
        if not said:
            raise self.none_readable()
        evidence = together(said)
        if not evidence.finite:
            raise TrainingError(
                f"task {self.name}: the model gives scores that are no numbers; its weights are damaged, or the rate was "
                "too high (--set optimiser.lr=…)"
            )
        never = never_trained(self.training_images, None, len(self.table.labels))
        judged = self.task.judged(evidence, self.table, never)
        goal, figures = self.task.goal, measured(judged, self.task.figures)
        return Judgement(goal, figures[goal], figures, judged, evidence.rows, tuple(self.task.apart(judged)))

    def held_out_loss(self, model: MultiTaskModel, device: torch.device) -> float:
        """Mean loss of the held-out images of all processes, by which the number of experts is chosen."""
        total, images = 0.0, 0
        for batch in unless_stopped(self.held_out_feed.batches(), self.stop):
            if len(batch):
                losses, _ = self.losses(model, batch, device)
                total += float(total_of(losses)) * len(batch)
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

"""The training loop, whole: batches → loss → weights → figures, with checkpoints from which it goes on bit for bit.

Nothing in it depends on what happened before but the checkpoint: the order of images is a function of (seed, epoch),
their augmentation of (seed, epoch, row), dropout of (seed, step).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object

from manylabel.config import Config
from manylabel.core.output import Output
from manylabel.data.dataset import Batch
from manylabel.error import DataError, TrainingError
from manylabel.metric import measured
from manylabel.mixing import mean_share, warnings
from manylabel.model import Model
from manylabel.stop import Stopped, unless_stopped
from manylabel.task import Classification, total_of
from manylabel.training.checkpoint import (
    Checkpoint,
    CheckpointFolder,
    going_on,
    load_trained_state,
    trained_state,
)
from manylabel.training.circumstances import circumstances, compare
from manylabel.training.ema import Ema
from manylabel.training.gate_watch import collapse, gate_figures
from manylabel.training.history import History
from manylabel.training.label_loss import label_losses
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.processes import asked_to_stop
from manylabel.training.scoring import Scored, score
from manylabel.training.snapshot import newest, restore_model, restore_optimiser, snapshot, use_average
from manylabel.training.work import TaskAtWork, Workplace

DRAWN = "mAP"  # the metric whose rise the report draws, whatever the goal is


@dataclass
class Position:
    """Where a run is. Saved with every checkpoint."""

    epoch: int = 0
    batch: int = 0  # batches done in this epoch
    step: int = 0  # changes of the weights so far
    loss_sum: float = 0.0  # over the images of this epoch so far
    images: int = 0
    best: float = -1.0  # validation goal (mAP, or top-1 for one label per image), percent
    best_epoch: int = 0


@dataclass(frozen=True)
class Progress:
    """What a progress bar shows after each batch."""

    epoch: int
    epochs: int
    batch: int
    batches: int
    loss: float
    rate: float
    goal: str  # what the epoch is chosen by
    value: float | None  # of it, at the last evaluation


class Trainer:
    """Trains a model on one table; `fit` leaves the chosen weights in it."""

    def __init__(
        self,
        config: Config,
        model: Model,
        work: TaskAtWork,
        place: Workplace,
    ) -> None:
        self.config, self.work, self.place = config, work, place
        self.table, self.bad_images = work.table, work.bad_images
        self.train_feed, self.val_feed = work.train_feed, work.val_feed
        self.accelerator, self.stop, self.say = place.accelerator, place.stop, place.say
        accelerator, table, folder = place.accelerator, work.table, place.folder
        self.never = work.never_trained
        self.plain_model = model.to(accelerator.device)
        if accelerator.device.type == "cpu" and not model.backbone.frozen:
            model.backbone.quicken()
        self.optimiser = OPTIMISERS.build(config.optimiser).build(model)
        self.steps_per_epoch = -(-len(self.train_feed) // config.train.accumulate)
        steps = self.steps_per_epoch * config.train.epochs
        self.schedule = SCHEDULES.build(config.schedule).build(self.optimiser, steps)
        self.ema = Ema(model, config.train.ema) if config.train.ema else None
        self.model, self.prepared_optimiser = accelerator.prepare(model, self.optimiser)
        self.task: Classification = work.task.learning(config, table, table.rows("train"), place.say)
        self.checkpoints = CheckpointFolder(folder / "checkpoints")
        self.history = History(folder / "metrics.jsonl")
        self.position = Position()
        self.value: float | None = None  # of the goal
        self.finished = False  # from here on the model holds the chosen weights, which are no state to go on from
        self._shown_loss = math.nan  # until there is one
        self._saved_at = time.monotonic()

    # --- the loop ---------------------------------------------------------------------------------------------------

    def fit(self, resume: bool = False) -> Position:
        if resume:
            self._restore()
        if self.accelerator.is_main_process:
            self.history.forget_after(self.position.epoch)
        while self.position.epoch < self.config.train.epochs:
            self._train_epoch()
            self._end_epoch()
        self._load_chosen()
        return self.position

    def _train_epoch(self) -> None:
        started, position = time.monotonic(), self.position
        for batch in unless_stopped(self.train_feed.batches(position.epoch, position.batch), self.stop):
            self.bad_images.add(batch.bad)
            value = self._step(batch)
            position.batch += 1
            position.loss_sum += value * len(batch)
            position.images += len(batch)
            self._tell()
            if self._whole():
                self._save_or_stop()
        self._save_or_stop()  # also when the workers were stopped with us and the epoch is not whole
        self._epoch_seconds = time.monotonic() - started

    def _step(self, batch: Batch) -> float:
        """One batch forward and backward; every `accumulate` batches the weights change. Returns the loss."""
        train, position = self.config.train, self.position
        empty = not len(batch)  # every image of it was unreadable
        if empty:
            size = self.plain_model.backbone.preprocess.size
            batch = Batch(torch.zeros(1, 3, size, size, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64))
        in_group = position.batch % train.accumulate
        last = position.batch + 1 == len(self.train_feed)
        change = last or in_group + 1 == train.accumulate
        group = min(train.accumulate, len(self.train_feed) - (position.batch - in_group))
        self.model.train(not empty)  # a blank image must not move the statistics of norms either
        seed = np.random.SeedSequence([train.seed, position.epoch, position.batch, self.accelerator.process_index])
        torch.manual_seed(int(seed.generate_state(1, np.uint32)[0]))
        targets = self.task.targets(batch, self.accelerator.device, np.random.default_rng(seed))
        with nullcontext() if change else self.accelerator.no_sync(self.model):
            with self.accelerator.autocast():
                output: Output = self.model(targets.inputs)
            loss = total_of(self.task.losses(output, targets))
            for cost in output.costs.values():  # of routers
                loss = loss + cost
            if empty:  # all processes take the step together; this one adds nothing to it
                loss = loss * 0
            value = float(loss.detach())
            if not math.isfinite(value):
                raise self._not_finite(batch, value)
            self.accelerator.backward(loss / group)
        if change:
            if train.clip:
                self.accelerator.clip_grad_norm_(self.model.parameters(), train.clip)
            self.prepared_optimiser.step()
            self.prepared_optimiser.zero_grad(set_to_none=True)
            if position.step + 1 < self.steps_per_epoch * train.epochs:
                self.schedule.step()
            if self.ema:
                self.ema.update()
            position.step += 1
        return value

    def _not_finite(self, batch: Batch, value: float) -> TrainingError:
        names = ", ".join(str(self.table.keys[row]) for row in batch.rows[:3].tolist())
        more = f" and {len(batch) - 3} more" if len(batch) > 3 else ""
        return TrainingError(
            f"the loss is {value} in epoch {self.position.epoch + 1}, batch {self.position.batch + 1} ({names}{more}); "
            "lower the rate (--set optimiser.lr=…), clip gradients (--set train.clip=1) or switch mixed precision off "
            "(--set train.amp=no). The last checkpoint is untouched"
        )

    def _tell(self) -> None:
        p = self.position
        rate = max(group["lr"] for group in self.optimiser.param_groups)
        if p.images:
            self._shown_loss = p.loss_sum / p.images
        total = len(self.train_feed)
        epochs, goal = self.config.train.epochs, self.task.goal
        self.place.report(Progress(p.epoch, epochs, p.batch, total, self._shown_loss, rate, goal, self.value))

    # --- judging, saving, taking up again ------------------------------------------------------------------------------

    def validate(self) -> Scored:
        """What the model says of the validation images, with the averaged weights where there are any."""
        with self.ema.applied() if self.ema else nullcontext():
            batches = unless_stopped(self.val_feed.batches(), self.stop)
            scored = score(self.plain_model, self._until_stopped(batches), self.accelerator, self.task)
        self._save_or_stop()
        self.bad_images.add(scored.bad)
        if not len(scored.rows):
            raise DataError("no validation image can be read, so the model cannot be judged")
        if not scored.finite:
            raise TrainingError(
                f"after epoch {self.position.epoch + 1} the model gives scores that are not numbers; lower the rate "
                "(--set optimiser.lr=…) or clip gradients (--set train.clip=1). The last checkpoint is untouched"
            )
        return scored

    def _until_stopped(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            if self.stop.signal is not None:
                return
            yield batch

    def _end_epoch(self) -> None:
        p = self.position
        if self.accelerator.num_processes > 1:
            self.bad_images.add(gather_object(list(self.bad_images.reasons.items())))
        scored = self.validate()
        figures = self._figures(scored)
        self.value = figures[self.task.goal]
        row = {
            "epoch": p.epoch + 1,
            "step": p.step,
            "loss": p.loss_sum / max(p.images, 1),
            **figures,
            "rate": max(group["lr"] for group in self.optimiser.param_groups),
            "seconds": round(self._epoch_seconds, 3),
            "images": p.images,
            **gate_figures(scored.use),
            **mean_share(scored.shares),
        }
        if self.value is None or self.value > p.best:
            p.best, p.best_epoch = self.value if self.value is not None else p.best, p.epoch + 1
            if self.accelerator.is_main_process:
                with self.ema.applied() if self.ema else nullcontext():
                    self.checkpoints.save_best(Checkpoint(trained_state(self.plain_model), {"epoch": p.best_epoch}))
        followed = p.epoch + 1 < self.config.train.epochs  # what nobody would judge any more is not changed
        if self.plain_model.head.adapts and followed:
            self.plain_model.observe(label_losses(self.task.loss, scored.scores, self.table.matrix[scored.rows]))
        p.epoch, p.batch, p.loss_sum, p.images = p.epoch + 1, 0, 0.0, 0
        if self.accelerator.is_main_process:
            self.history.add(row)
            self.save()
        judged = "–" if self.value is None else f"{self.value:.2f}"
        epochs = f"{row['epoch']}/{self.config.train.epochs}"
        self.say(f"epoch {epochs}  loss {row['loss']:.4f}  {self.task.goal} {judged}  {row['seconds']:.1f} s")
        for sentence in (*collapse(scored.use), *warnings(scored.shares)):
            self.say(sentence)
        self.accelerator.log({k: v for k, v in row.items() if v is not None and k != "step"}, step=p.step)
        self._tell()

    def _figures(self, scored: Scored) -> dict[str, float | None]:
        """mAP and the goal, in percent, on what training may look at."""
        judged = self.task.judged(scored, self.table, self.never)
        if self.work.unseen is not None:
            judged = judged.part(np.flatnonzero(~self.work.unseen))
        return measured(judged, (self.task.goal, DRAWN))

    def _whole(self) -> bool:
        """Whether no gradients wait for more batches to be added: half an accumulation is nothing to save."""
        return self.position.batch % self.config.train.accumulate == 0 or self.position.batch == len(self.train_feed)

    def _save_or_stop(self) -> None:
        p, asked = self.position, asked_to_stop(self.stop, self.accelerator)
        due = time.monotonic() - self._saved_at > 60 * self.config.train.checkpoint_minutes
        if (due or asked) and self._whole() and not self.finished and self.accelerator.is_main_process:
            self.save()
        if asked:
            self.accelerator.wait_for_everyone()
            raise Stopped(
                f"stopped in epoch {p.epoch + 1}, batch {p.batch} of {len(self.train_feed)}; everything is saved. "
                f"Go on with: {self.place.again}",
                asked,
            )

    def save(self) -> None:
        scaler = self.accelerator.scaler
        values = {
            "position": asdict(self.position),
            "scaler": scaler.state_dict() if scaler is not None else {},
            "value": self.value,
            "circumstances": self._circumstances(),
        }
        serial = self.position.epoch * (len(self.train_feed) + 1) + self.position.batch
        self.checkpoints.save(serial, snapshot(self.plain_model, self.optimiser, self.schedule, self.ema, values))
        self._saved_at = time.monotonic()

    def _restore(self) -> None:
        found = newest(self.checkpoints, self.say)
        if found is None:
            return
        values = found.values
        with going_on():
            compare(values["circumstances"], self._circumstances(), self.say)
            restore_model(found, self.plain_model, self.ema)
            restore_optimiser(found, self.optimiser, self.schedule)
            if self.accelerator.scaler is not None:
                self.accelerator.scaler.load_state_dict(values["scaler"])
            self.position = Position(**values["position"])
            self.value = values["value"]
        self.say(f"going on in epoch {self.position.epoch + 1}, after batch {self.position.batch}")

    def _circumstances(self) -> dict[str, Any]:
        return circumstances(self.table, self.accelerator.num_processes)

    def _load_chosen(self) -> None:
        """Put the weights that leave the run into the model: the best epoch's, or the last ones."""
        self.accelerator.wait_for_everyone()
        self.finished = True
        if self.config.train.keep == "best":
            load_trained_state(self.plain_model, self.checkpoints.load_best().tensors)
        elif self.ema:
            use_average(self.plain_model, self.ema)
        self.ema = None

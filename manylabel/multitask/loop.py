"""The training loop of several tasks: a step takes one batch of each, adds their losses and changes the weights once.

Nothing in it depends on what happened before but the checkpoint: the order of a task's images is a function of
(seed, epoch), their augmentation of (seed, epoch, row), dropout and router noise of (seed, step, task).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from manylabel.config import MultiTaskConfig
from manylabel.data.dataset import Batch
from manylabel.error import DataError, TrainingError
from manylabel.multitask.conflict import Conflict
from manylabel.multitask.model import MultiTaskModel, judging
from manylabel.multitask.probe import Probe, forget_after
from manylabel.multitask.wording import in_words_of
from manylabel.multitask.work import Judgement, TaskWork, judge_each
from manylabel.stop import Stopped, StopRequest
from manylabel.task import total_of
from manylabel.training.checkpoint import (
    CheckpointFolder,
    going_on,
)
from manylabel.training.circumstances import compare
from manylabel.training.ema import Ema
from manylabel.training.history import History
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.processes import asked_to_stop
from manylabel.training.snapshot import newest, restore_model, restore_optimiser, snapshot, use_average


@dataclass
class StepPosition:
    """Where a run is. Saved with every checkpoint."""

    step: int = 0  # changes of the weights so far
    looked: int = 0  # the last step after which everything that follows a step was done: a stop may come in between
    taken: dict[str, int] = field(default_factory=dict)  # batches of every task so far, unreadable ones included
    loss_sum: dict[str, float] = field(default_factory=dict)  # of every task since the last line of the history
    loss_steps: dict[str, int] = field(default_factory=dict)
    conflict: dict[str, float] | None = None  # cosines of the tasks' gradients in this step, where they were compared,
    pull: dict[str, float] | None = None  # and their lengths


@dataclass(frozen=True)
class StepProgress:
    """What a progress bar shows."""

    step: int
    steps: int
    losses: Mapping[str, float]
    k: Mapping[str, int]


class MultiTaskTrainer:
    """Trains a model on all its tasks; `fit` leaves the weights to be used in it."""

    def __init__(
        self,
        config: MultiTaskConfig,
        model: MultiTaskModel,
        works: Mapping[str, TaskWork],
        folder: Path,
        accelerator: Accelerator,
        stop: StopRequest,
        circumstances: dict[str, Any],
        report: Callable[[StepProgress], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        first = config.train.first
        self.config, self.works, self.folder = config, works, folder
        self.accelerator, self.stop, self.report, self.say = accelerator, stop, report, say
        self.circumstances = circumstances
        self.model = model.to(accelerator.device)
        self.alone = config.train.first_steps if first is not None else 0
        self.steps = self.alone + config.train.steps
        self.ema = Ema(model, config.train.ema) if config.train.ema else None
        self.checkpoints = CheckpointFolder(folder / "checkpoints")
        self.history = History(folder / "metrics.jsonl")
        self.probe = Probe(works, folder / "routing")
        self.position = StepPosition()
        self.waiting: dict[str, Iterator[Batch]] = {}
        self._saved_at = self._noted_at = time.monotonic()

    # --- the loop -----------------------------------------------------------------------------------------------------

    def fit(self, resume: bool = False) -> None:
        if resume:
            self._restore()
        else:
            self._begin_phase()
        if self.accelerator.is_main_process:
            self.history.forget_after(self.position.looked)
            forget_after(folder=self.probe.folder, step=self.position.looked)
        if self.position.looked < self.position.step:
            self._after_step()
        while self.position.step < self.steps:
            if self.position.step == self.alone and self.alone:
                self._begin_phase()
            self._step()
            self._after_step()
        if self.accelerator.is_main_process:
            self.save()  # what comes now, judging and drawing, may go wrong
        if self.ema:
            use_average(self.model, self.ema)
            self.ema = None

    def active(self) -> list[str]:
        """The tasks of this step: one alone to begin with, where a recipe says so, then all."""
        return [str(self.config.train.first)] if self.position.step < self.alone else list(self.works)

    def _begin_phase(self) -> None:
        """A fresh optimiser and schedule for the task that goes first, and then for all of them."""
        model: Any = self.model
        steps = self.alone if self.position.step < self.alone else self.config.train.steps
        self.optimiser = OPTIMISERS.build(self.config.optimiser).build(model)
        self.schedule = SCHEDULES.build(self.config.schedule).build(self.optimiser, steps)

    def _step(self) -> None:
        train, step = self.config.train, self.position.step
        self.model.train()
        conflict = Conflict(self.model) if self._noted(step + 1) and len(self.active()) > 1 else None
        values: dict[str, float] = {}
        taken = dict(self.position.taken)
        for number, name in enumerate(self.active()):
            batch, drawn = self._next(name)
            taken[name] = taken.get(name, 0) + drawn
            seed = np.random.SeedSequence([train.seed, step, number, self.accelerator.process_index])
            torch.manual_seed(int(seed.generate_state(1, np.uint32)[0]))
            with in_words_of(name):
                losses = self._losses(name, batch)
            total = total_of(losses)
            value = float(total.detach())
            if not math.isfinite(value):
                raise self._not_finite(name, batch, losses)
            (self.works[name].config.weight * total).backward()
            if conflict is not None:
                conflict.after(name)
            values[name] = value
        self._share_gradients()
        if train.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), train.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        p = self.position
        p.taken = taken
        for name, value in values.items():
            p.loss_sum[name] = p.loss_sum.get(name, 0.0) + value
            p.loss_steps[name] = p.loss_steps.get(name, 0) + 1
        p.conflict, p.pull = (None, None) if conflict is None else (conflict.cosines(), conflict.lengths())
        p.step += 1
        if self.position.step not in (self.alone, self.steps):  # the last step of a phase has no next rate
            self.schedule.step()
        if self.ema:
            self.ema.update()

    def _losses(self, name: str, batch: Batch) -> dict[str, Tensor]:
        """The task's losses, and what its routers cost, unweighted by the task."""
        cast = torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=self.config.train.amp == "bf16")
        with cast:
            losses, costs = self.works[name].losses(self.model, batch, self.accelerator.device)
        return {**losses, **costs}

    def _next(self, name: str) -> tuple[Batch, int]:
        """The task's next batch that has an image, and how many were taken for it."""
        work = self.works[name]
        if name not in self.waiting:
            self.waiting[name] = work.batches(self.position.taken.get(name, 0))
        with in_words_of(name):
            for drawn, batch in enumerate(self.waiting[name], start=1):
                work.bad.add(batch.bad)
                if len(batch):
                    return batch, drawn
        self._save_or_stop()
        raise TrainingError(f"task {name}: there are no more training images to read")

    def _share_gradients(self) -> None:
        """With several processes: the mean of all gradients. By hand, for each pass of a step uses a part of the weights.
        A task that is not trained now has none, and so does not change."""
        if self.accelerator.num_processes == 1:
            return
        trained = (None, *self.active())
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad and self.model.owner(name) in trained:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                torch.distributed.all_reduce(parameter.grad)
                parameter.grad /= self.accelerator.num_processes

    def _not_finite(self, name: str, batch: Batch, losses: dict[str, Tensor]) -> TrainingError:
        parts = ", ".join(f"{part} {float(loss.detach()):.3g}" for part, loss in losses.items())
        keys = ", ".join(str(self.works[name].table.keys[row]) for row in batch.rows[:3].tolist())
        return TrainingError(
            f"the loss of task {name} is not a number in step {self.position.step + 1} ({parts}; images {keys}); lower the "
            "rate (--set optimiser.lr=…) or clip gradients (--set train.clip=1). The last checkpoint is untouched"
        )

    # --- between steps ------------------------------------------------------------------------------------------------

    def _after_step(self) -> None:
        p, s, every = self.position, self.config.selection, self.config.train.judge_every
        self.report(StepProgress(p.step, self.steps, self._mean_losses(), self.k()))
        together = p.step - self.alone
        row: dict[str, Any] = {}
        selects = s.adaptive and self.model.vit.sparse and together > s.start and together % s.every == 0
        try:
            losses = self._held_out_losses() if selects else []
            if every and p.step % every == 0 and p.step < self.steps:
                judged = self.judge(tasks=self.active())
                row |= {"judged": {name: one.figures for name, one in judged.items()}}
        except DataError:  # a signal to all processes ends the workers, and with them the images
            self._save_or_stop()
            raise
        if selects or row:
            self._save_or_stop()  # what was looked at while a stop was asked for may be a part of it: it is done again
        if selects:
            row |= self._select(losses)
        p.looked = p.step
        if self._noted(p.step):
            if p.conflict is not None:
                row |= {"conflict": p.conflict, "pull": p.pull}
            if self.model.vit.sparse and self.accelerator.is_main_process:
                self.probe.look(self.model, p.step, self.accelerator.device)
        if row or self._noted(p.step):
            self._note(row)
        self._save_or_stop()

    def _noted(self, step: int) -> bool:
        """Steps whose figures are kept in any case: about fifty, and the ends of phases."""
        return step in (self.alone, self.steps) or step % max(1, self.steps // 50) == 0

    def _held_out_losses(self) -> list[float]:
        """Of every task, with the averaged weights where there are any: they are steadier, and will be used."""
        losses = []
        with self._judged_weights():
            for name, work in self.works.items():
                with in_words_of(name):
                    losses.append(work.held_out_loss(self.model, self.accelerator.device))
        return losses

    def _select(self, losses: list[float]) -> dict[str, Any]:
        """Algorithm 1: each task's held-out loss decides how many experts it uses from now on."""
        c = self.config.selection
        may_grow = self.steps - self.position.step >= c.patience  # later, nobody could say what it brought
        changes = self.model.selection.update(torch.tensor(losses), c.every, may_grow)
        for name, change, loss in zip(self.works, changes.tolist(), losses, strict=True):
            if change:
                self.say(
                    f"step {self.position.step}: {name} now uses {self.model.k(name)} "
                    f"expert{'s' if self.model.k(name) > 1 else ''} ({change:+d}; held-out loss {loss:.4f})"
                )
        return {"held_out": dict(zip(self.works, losses, strict=True))}

    def judge(
        self, advance: Callable[[int], None] = lambda _: None, tasks: Sequence[str] | None = None
    ) -> dict[str, Judgement]:
        """Figures of every task on its val images, with the averaged weights where there are any."""
        chosen = self.works if tasks is None else {name: self.works[name] for name in tasks}
        with self._judged_weights():
            return judge_each(chosen, self.model, self.accelerator.device, advance)

    @contextmanager
    def _judged_weights(self) -> Iterator[None]:
        with self.ema.applied() if self.ema else nullcontext(), judging(self.model):
            yield

    def k(self) -> dict[str, int]:
        return {name: self.model.k(name) for name in self.works}

    def _mean_losses(self) -> dict[str, float]:
        p = self.position
        return {name: total / p.loss_steps[name] for name, total in p.loss_sum.items()}

    def _note(self, row: dict[str, Any]) -> None:
        p = self.position
        rate = max(group["lr"] for group in self.optimiser.param_groups)
        seconds, self._noted_at = time.monotonic() - self._noted_at, time.monotonic()
        if self.accelerator.is_main_process:
            facts = {"epoch": p.step, "loss": self._mean_losses(), "k": self.k(), "rate": rate}
            self.history.add({**facts, "seconds": round(seconds, 2), **row})
        p.loss_sum, p.loss_steps = {}, {}

    # --- saving and taking up again -------------------------------------------------------------------------------------

    def _save_or_stop(self) -> None:
        asked = asked_to_stop(self.stop, self.accelerator)
        due = time.monotonic() - self._saved_at > 60 * self.config.train.checkpoint_minutes
        if (asked or due) and self.accelerator.is_main_process:
            self.save()
        if asked:
            self.accelerator.wait_for_everyone()
            raise Stopped(
                f"stopped after step {self.position.step} of {self.steps}; everything is saved. "
                f"Go on with: manylabel train --resume --out {self.folder}",
                asked,
            )

    def save(self) -> None:
        values = {"position": asdict(self.position), "circumstances": self.circumstances}
        now = snapshot(self.model, self.optimiser, self.schedule, self.ema, values)
        self.checkpoints.save(self.position.step, now)
        self._saved_at = time.monotonic()

    def _restore(self) -> None:
        found = newest(self.checkpoints, self.say)
        if found is None:
            self._begin_phase()
            return
        with going_on():
            compare(found.values["circumstances"], self.circumstances, self.say)
            self.position = StepPosition(**found.values["position"])
            restore_model(found, self.model, self.ema)
            self._begin_phase()
            if self.position.step != self.alone:  # there a new phase begins with a fresh optimiser
                restore_optimiser(found, self.optimiser, self.schedule)
        self.say(f"goes on after step {self.position.step} of {self.steps}")

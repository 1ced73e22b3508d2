"""The training loop, for one task or several: a step takes a batch of each, adds their losses and changes the weights once.

Nothing in it depends on what happened before but the checkpoint: the order of a task's images is a function of
(seed, epoch), their augmentation of (seed, epoch, row), dropout and router noise of (seed, epoch, batch, task).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor

from manylabel.config import Config, has_one_task
from manylabel.core.output import Output
from manylabel.data.dataset import Batch
from manylabel.error import CheckpointError, DataError, TrainingError
from manylabel.model import evaluating
from manylabel.stop import Stopped, unless_stopped
from manylabel.task import Classification, told_by_task, total_of
from manylabel.task.wording import in_words_of
from manylabel.training.checkpoint import Checkpoint, CheckpointFolder, going_on, load_trained_state, trained_state
from manylabel.training.circumstances import circumstances, compare
from manylabel.training.ema import Ema
from manylabel.training.history import History
from manylabel.training.label_loss import label_losses
from manylabel.training.notes import Noted, figures_of, flat, goal_value, goal_words, row_of, sentences
from manylabel.training.optimise import OPTIMISERS, SCHEDULES
from manylabel.training.parallel import average_gradients, share_buffers
from manylabel.training.phase import Phase, TrainedPart
from manylabel.training.processes import asked_to_stop
from manylabel.training.pull import Pull
from manylabel.training.scoring import Scored, score
from manylabel.training.snapshot import newest, restore_model, restore_optimiser, snapshot, use_average
from manylabel.training.state import State, state_of
from manylabel.training.watch import Watch
from manylabel.training.work import TaskAtWork, Workplace

NOTED = 50  # lines of the history in a run that counts steps


@dataclass(frozen=True)
class Progress:
    """What a progress bar shows after each step."""

    step: int
    steps: int
    epoch: int | None  # None where steps are counted
    epochs: int
    losses: Mapping[str, float]
    lr: float
    k: Mapping[str, int]  # experts of a token, of tasks that have some
    goal: str  # by which weights are chosen
    value: float | None  # of it, at the last evaluation


class Trainer:
    """Trains a model phase by phase; `fit` leaves the weights to be used in the model of the last one."""

    def __init__(self, config: Config, phases: Sequence[Phase], place: Workplace, watch: Watch | None = None) -> None:
        self.config, self.phases, self.place, self.watch = config, phases, place, watch
        self.named, self.by_task = not has_one_task(config), told_by_task(config)
        self.accelerator, self.stop = place.accelerator, place.stop
        self.processes = place.accelerator.num_processes
        self._saved_at = self._noted_at = time.monotonic()

    def fit(self, resume: bool = False) -> State:
        number, found = self._newest() if resume else (0, None)
        while number < len(self.phases):
            self._begin(number)
            if found is not None:
                self._take_up(found)
                found = None
            self._train()
            self._end()
            number = self.state.phase + 1
        return self.state

    # --- a phase ------------------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> None:
        self.phase = phase = self.phases[number]
        self.place.pause()
        prepared = phase.prepare()
        self.model, device = prepared.model.to(self.accelerator.device), self.accelerator.device
        if device.type == "cpu" and not (phase.head_only or self.model.backbone.frozen):
            self.model.backbone.quicken()
        self.model.backbone.begin_phase(phase.alone)
        self.works = {name: work.learning(self.place.say) for name, work in prepared.works.items()}
        self.epoch_batches = {name: len(work.feeds.train) for name, work in self.works.items()}
        self.steps_per_epoch = -(-self.epoch_batches[phase.lead] // phase.train.accumulate)
        self.steps = phase.train.steps or self.steps_per_epoch * phase.train.epochs
        self.plain_optimiser = OPTIMISERS.build(phase.optimiser).build(TrainedPart(self.model, phase.head_only))
        self.schedule = SCHEDULES.build(phase.schedule).build(self.plain_optimiser, self.steps)
        self.ema = Ema(self.model, phase.train.ema) if phase.train.ema else None
        self.accelerator.free_memory()  # it would keep the optimiser of the phase before
        self.optimiser = self.accelerator.prepare(self.plain_optimiser)
        self.checkpoints = CheckpointFolder(phase.folder / "checkpoints")
        self.history = History(phase.folder / "metrics.jsonl")
        self.state = State(number)
        self.value: float | None = None  # of the figure that chooses the weights
        self.finished = False  # from here on the model holds the chosen weights, which are no state to go on from
        self.pulls: dict[str, dict[str, float]] = {}  # of the last step, as the history has them; {} = nobody looked
        self.batches: dict[str, Iterator[Batch]] = {}
        owners = self.model.owners()
        self.trained = [
            p for n, p in self.model.named_parameters() if p.requires_grad and owners.get(n, phase.lead) in phase.active
        ]

    def _train(self) -> None:
        state = self.state
        if self.accelerator.is_main_process:
            self.history.forget_after(state.done + self.phase.before)
            if self.watch is not None:
                self.watch.forget_after(state.done + self.phase.before)
        if state.done < state.step:
            self._between_steps()
        while state.step < self.steps:
            self._step()
            self._between_steps()
        if self.accelerator.is_main_process:
            self.save()  # what comes now, evaluating and drawing, may go wrong

    def _end(self) -> None:
        """Put the weights that leave the phase into the model: the best ones, or the last."""
        self.accelerator.wait_for_everyone()
        self.finished = True
        if self.phase.best_by is not None:
            load_trained_state(self.model, self.checkpoints.load_best().tensors)
        elif self.ema:
            use_average(self.model, self.ema)
        self.ema = None

    # --- a step -------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        phase, state = self.phase, self.state
        taken, losses = dict(state.taken), list[tuple[str, float, int]]()
        done = taken.get(phase.lead, 0) % self.epoch_batches[phase.lead]
        group = min(phase.train.accumulate, self.epoch_batches[phase.lead] - done)
        pull = Pull(self.model) if self._is_noted(state.step + 1) and len(phase.active) > 1 else None
        for _ in range(group):
            for number, name in enumerate(phase.active):
                with in_words_of(name, self.named):
                    batch, seed, drawn = self._next(name, number, taken.get(name, 0))
                    value = self._pass(name, batch, seed, group)
                taken[name] = taken.get(name, 0) + drawn
                losses.append((name, value, len(batch)))
                if pull is not None:
                    pull.after(name, self.accelerator.scaler)
        average_gradients(self.trained, self.processes)
        if phase.train.clip:
            self.accelerator.clip_grad_norm_(self.model.parameters(), phase.train.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        share_buffers(self.model, self.processes)
        if state.step + 1 < self.steps:  # the last step has no next rate
            self.schedule.step()
        if self.ema:
            self.ema.update()
        self.pulls = {} if pull is None else {"conflict": pull.cosines(), "pull": pull.lengths()}
        state.advance(losses, taken)

    def _next(self, name: str, number: int, taken: int) -> tuple[Batch, np.random.SeedSequence, int]:
        """The task's next batch, what its random numbers come from, and how many were drawn for it.

        All processes take each step of the leading task together, whatever can be read of its images; of other tasks a
        batch without any image is passed over.
        """
        if name not in self.batches:
            self.batches[name] = self.works[name].batches(taken)
        for drawn, batch in enumerate(self.batches[name], start=1):
            self.works[name].bad_images.add(batch.bad)
            if len(batch) or number == 0:
                epoch, place = divmod(taken + drawn - 1, self.epoch_batches[name])
                numbers = [self.phase.train.seed, epoch, place, self.accelerator.process_index]
                return batch, np.random.SeedSequence([*numbers, number] if number else numbers), drawn
        self._save_or_stop()
        raise TrainingError("there are no more training images to read")

    def _pass(self, name: str, batch: Batch, seed: np.random.SeedSequence, group: int) -> float:
        """One batch forward and backward. Returns the loss."""
        if not len(batch):  # all processes take the step together; this one adds nothing to it
            for parameter in self.trained:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            return 0.0
        work = self.works[name]
        self.model.train()
        torch.manual_seed(int(seed.generate_state(1, np.uint32)[0]))
        targets = work.task.targets(batch, self.accelerator.device, np.random.default_rng(seed))
        with self.accelerator.autocast():
            output: Output = self.model(targets.inputs, name, targets.objects)
        losses = work.task.losses(output, targets)
        own, weight = total_of(losses), work.config.weight
        loss = weight * own if weight != 1 else own
        for cost in output.costs.values():  # of what the tasks share
            loss = loss + (weight * cost if self.phase.train.weigh_costs else cost)
        value = float(own.detach()) + sum(float(cost.detach()) for cost in output.costs.values())  # unweighed
        if not math.isfinite(value):
            raise self._not_finite(name, batch, losses, value)
        self.accelerator.backward(loss / group)
        return value

    def _not_finite(self, name: str, batch: Batch, losses: Mapping[str, Tensor], value: float) -> TrainingError:
        table = self.works[name].table
        keys = ", ".join(str(table.keys[row]) for row in batch.rows[:3].tolist())
        more = f" and {len(batch) - 3} more" if len(batch) > 3 else ""
        parts = ", ".join(f"{part} {float(loss.detach()):.3g}" for part, loss in losses.items())
        of_parts = f" ({parts})" if len(losses) > 1 else ""
        return TrainingError(
            f"the loss is {value}{of_parts} in {self._where(next_one=True)} ({keys}{more}); lower the rate (--set "
            "optimiser.lr=…), clip gradients (--set train.clip=1) or switch mixed precision off (--set train.amp=no). The "
            "last checkpoint is untouched"
        )

    def _where(self, next_one: bool = False) -> str:
        """In words, for messages."""
        if self.phase.train.steps:
            return f"step {self.state.step + next_one + self.phase.before} of {self.steps + self.phase.before}"
        epoch, batch = divmod(self.state.taken.get(self.phase.lead, 0), self.epoch_batches[self.phase.lead])
        if batch == 0 and epoch and self.state.done < self.state.step:
            epoch, batch = epoch - 1, self.epoch_batches[self.phase.lead]
        return f"epoch {epoch + 1}, batch {batch + next_one} of {self.epoch_batches[self.phase.lead]}"

    # --- between steps ------------------------------------------------------------------------------------------------

    def _between_steps(self) -> None:
        state, evaluates, now = self.state, self._evaluates_at(self.state.step), time.monotonic()
        self._report()
        held_out = self._held_out_losses() if self._adapts_at(state.step) else None
        scored = {name: self.evaluate(name) for name in self.phase.active} if evaluates else {}
        observed = self._held_out_scores() if self._observes_at(state.step) else {}
        if held_out is not None or scored or observed:
            self._save_or_stop()  # what was looked at while a stop was asked for may be a part of it: it is done again
        if self.processes > 1 and evaluates:
            for name in self.phase.active:
                bad = self.works[name].bad_images
                bad.add(gather_object(list(bad.reasons.items())))
        row: dict[str, Any] = {}
        if held_out is not None:
            row |= self._adapt(held_out)
        if scored or row or self._is_noted(state.step):
            self._note(scored, row, now - self._noted_at)
            self._noted_at = time.monotonic()
        self._observe(observed)
        state.done = state.step
        if scored and not self.phase.train.steps and self.accelerator.is_main_process:
            self.save()
        self._report()
        self._save_or_stop()

    def _epochs_done(self, step: int) -> int | None:
        """How many epochs are whole after this step; None in the middle of one."""
        epochs, rest = divmod(step, self.steps_per_epoch)
        return None if rest else epochs

    def _evaluates_at(self, step: int) -> bool:
        every = self.phase.train.evaluate_every
        last = step == self.steps and self.phase.best_by is not None  # it may be the best one
        if every:
            return last or (step % every == 0 and step < self.steps)
        if self.phase.train.steps:
            return last
        return self._epochs_done(step) is not None

    def _observes_at(self, step: int) -> bool:
        """When heads that adapt hear of their labels; what nobody would see any more is not changed."""
        return step < self.steps and (self._evaluates_at(step) or self._epochs_done(step) is not None)

    def _is_noted(self, step: int) -> bool:
        """The last step, and in a run that counts steps some of them."""
        return step == self.steps or (bool(self.phase.train.steps) and step % max(1, self.steps // NOTED) == 0)

    def _adapts_at(self, step: int) -> bool:
        adapt = self.config.train.adapt
        return self.phase.adapts and step > adapt.start and step % adapt.every == 0

    def _held_out_losses(self) -> dict[str, float]:
        """Of every task, with the weights as they are: an average would still be of the time before the last growth."""
        losses = {}
        with evaluating(self.model):
            for name in self.phase.active:
                with in_words_of(name, self.named):
                    losses[name] = self.works[name].held_out_loss(self.model, self.accelerator.device, self.processes)
        return losses

    def _held_out_scores(self) -> dict[str, Scored]:
        """Of tasks whose head adapts to its labels' losses; with the weights as they are, too."""
        found = {}
        for name in self.phase.active:
            feed = self.works[name].feeds.held_out
            if self.model.heads[name].adapts and feed is not None:
                batches = self._until_stopped(unless_stopped(feed.batches(), self.stop))
                found[name] = score(self.model.task(name), batches, self.accelerator, self.works[name].task)
        return found

    def _observe(self, scored: Mapping[str, Scored]) -> None:
        for name, one in scored.items():
            work = self.works[name]
            assert isinstance(work.task, Classification)
            if not len(one.rows):
                raise DataError(f"none of the {len(work.parts.held_out)} held-out images can be read")
            self.model.task(name).observe(label_losses(work.task.loss, one.scores, work.table.matrix[one.rows]))

    def _adapt(self, losses: dict[str, float]) -> dict[str, Any]:
        """Algorithm 1: each task's held-out loss decides how many experts it uses from now on."""
        adapt = self.config.train.adapt
        # Later, nobody could say what it brought; the algorithm does not ask.
        may_grow = adapt.to_the_end or self.steps - self.state.step >= adapt.patience
        for name, change in self.model.backbone.observe(losses, adapt.every, may_grow).items():
            if change:
                k = self.model.experts(name)
                self.place.say(
                    f"step {self.state.step + self.phase.before}: {name} now uses {k} expert{'s' if k > 1 else ''} "
                    f"({change:+d}; held-out loss {losses[name]:.4f})"
                )
        return {"held_out": losses}

    def evaluate(self, name: str, advance: Callable[[int], None] = lambda _: None) -> Scored:
        """What the model says of a task's val images, with the averaged weights where there are any."""
        work = self.works[name]
        with in_words_of(name, self.named):
            batches = unless_stopped(work.feeds.val.batches(), self.stop)
            with self.ema.applied() if self.ema else nullcontext():
                scored = score(
                    self.model.task(name), self._until_stopped(batches), self.accelerator, work.task, advance
                )
            self._save_or_stop()  # with the model's own weights
            work.bad_images.add(scored.bad)
            if not len(scored.rows):
                raise DataError("no validation image can be read, so the model cannot be evaluated")
            if not scored.finite:
                raise TrainingError(
                    f"after {self._where()} the model gives scores that are not numbers; lower the rate "
                    "(--set optimiser.lr=…) or clip gradients (--set train.clip=1). The last checkpoint is untouched"
                )
        return scored

    def _until_stopped(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            if self.stop.signal is not None:
                return
            yield batch

    def _note(self, scored: Mapping[str, Scored], row: dict[str, Any], seconds: float) -> None:
        """A line of the history; the best weights so far; a line on the terminal."""
        state, phase = self.state, self.phase
        figures = {name: figures_of(self.works[name], one, self.by_task) for name, one in scored.items()}
        facts = Noted(
            self._epoch_number(), state.step + phase.before, self._lr(), round(seconds, 3), self._k(), self.pulls
        )
        row = row_of(facts, state, figures, scored, self.by_task) | row
        if scored:
            self.value = goal_value(figures, self.works, phase.best_by)
            self._keep_best(row["epoch"])
        if self.accelerator.is_main_process:
            self.history.add(row)
            if self.watch is not None and phase.train.steps:
                self.watch.look(self.model, self.works, state.step + phase.before, self.accelerator.device)
        for sentence in sentences(row, scored, figures, self.works, phase):
            self.place.say(f"{phase.says}{sentence}")
        logged = {key: one for key, one in flat(row).items() if isinstance(one, (int, float)) and key != "step"}
        self.accelerator.log(logged, step=state.step + phase.before)
        state.forget_losses()

    def _keep_best(self, epoch: int) -> None:
        state = self.state
        if self.phase.best_by is None or not (self.value is None or self.value > state.best):
            return
        state.best = self.value if self.value is not None else state.best
        state.best_epoch, state.best_step = epoch, state.step
        if self.accelerator.is_main_process:
            with self.ema.applied() if self.ema else nullcontext():
                self.checkpoints.save_best(Checkpoint(trained_state(self.model), {"epoch": epoch}))

    def _epoch_number(self) -> int:
        """The epoch of the leading task that these steps belong to, from 1."""
        return -(-self.state.taken.get(self.phase.lead, 0) // self.epoch_batches[self.phase.lead])

    def _lr(self) -> float:
        lr: float = max(group["lr"] for group in self.plain_optimiser.param_groups)
        return lr

    def _k(self) -> dict[str, int]:
        return {name: self.model.experts(name) for name in self.works} if self.model.backbone.adapts else {}

    def _report(self) -> None:
        phase, state = self.phase, self.state
        if phase.head_only:  # it comes before what is counted
            return
        epoch = None if phase.train.steps else state.taken.get(phase.lead, 0) // self.epoch_batches[phase.lead]
        losses = state.mean_losses() or getattr(self, "_shown", {})
        self._shown = losses
        goal = goal_words(self.works, phase)
        steps = self.steps + phase.before
        self.place.report(
            Progress(
                state.step + phase.before,
                steps,
                epoch,
                phase.train.epochs,
                losses,
                self._lr(),
                self._k(),
                goal,
                self.value,
            )
        )

    # --- saving and taking up again -----------------------------------------------------------------------------------

    def _save_or_stop(self) -> None:
        asked = asked_to_stop(self.stop, self.accelerator)
        due = time.monotonic() - self._saved_at > 60 * self.phase.train.checkpoint_minutes
        if (due or asked) and not self.finished and self.accelerator.is_main_process:
            self.save()
        if asked:
            self.accelerator.wait_for_everyone()
            raise Stopped(
                f"{self.phase.says}stopped in {self._where()}; everything is saved. Go on with: {self.place.again}",
                asked,
            )

    def save(self) -> None:
        scaler = self.accelerator.scaler
        values = {
            "position": asdict(self.state),
            "scaler": scaler.state_dict() if scaler is not None else {},
            "value": self.value,
            "pulls": self.pulls,
            "circumstances": self._circumstances(),
        }
        now = snapshot(self.model, self.plain_optimiser, self.schedule, self.ema, values)
        self.checkpoints.save(self._serial(), now)
        self._saved_at = time.monotonic()

    def _serial(self) -> int:
        """By which later checkpoints are told from earlier ones."""
        taken, whole = self.state.taken.get(self.phase.lead, 0), self.epoch_batches[self.phase.lead]
        of_phase = taken + taken // whole - (taken % whole == 0 and self.state.done < self.state.step)
        return of_phase + 2 * self.phase.before * self.phase.train.accumulate  # no phase before has come as far

    def _circumstances(self) -> dict[str, Any]:
        return circumstances({name: work.table for name, work in self.works.items()}, self.processes)

    def _newest(self) -> tuple[int, Checkpoint | None]:
        """The newest checkpoint, and the phase that it is of; where there is none, the run begins anew."""
        for number in reversed(range(len(self.phases))):
            folder = CheckpointFolder(self.phases[number].folder / "checkpoints")
            if folder.finished or number == 0:
                found = newest(folder, self.place.say)
                return (0, None) if found is None else (self._phase_of(found, number), found)
        return 0, None

    def _phase_of(self, found: Checkpoint, last: int) -> int:
        told = found.values.get("position", {})
        if "phase" in told:
            number: int = told["phase"]
            return number
        first = last > 0 and self.phases[last - 1].folder == self.phases[last].folder
        return last - 1 if first and told.get("step", 0) < self.phases[last].before else last

    def _take_up(self, found: Checkpoint) -> None:
        values, number = found.values, self.state.phase
        with going_on():
            compare(values["circumstances"], self._circumstances(), self.place.say)
            restore_model(found, self.model, self.ema)
            self.state = state_of(values, list(self.phase.active), self.epoch_batches, number, self.phase.before)
            earlier = "done" not in values["position"]  # it was written by an earlier version
            if not (earlier and self.phase.before and not self.state.step):  # there a phase begins with a fresh one
                restore_optimiser(found, self.plain_optimiser, self.schedule)
            if self.accelerator.scaler is not None:
                self.accelerator.scaler.load_state_dict(values["scaler"])
            self.value = values.get("value")
            self.pulls = values.get("pulls", {})
        if earlier and any(self.model.heads[name].adapts for name in self.works):
            raise CheckpointError(
                "an earlier version began this run, whose head adapted by the val images; it cannot go on by others: train "
                "anew with --overwrite"
            )
        if self.state.phase != number:
            raise CheckpointError(
                f"the checkpoint is of phase {self.state.phase}, not {number}; train anew with --overwrite"
            )
        self.place.say(f"{self.phase.says}going on in {self._where()}")


__all__ = ["Progress", "TaskAtWork", "Trainer", "Workplace"]

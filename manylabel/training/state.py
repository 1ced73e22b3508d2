"""Where a run is: saved with every checkpoint, and read from those of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from manylabel.config import LABELS


@dataclass
class State:
    """Of one phase; steps are changes of the weights."""

    phase: int = 0
    step: int = 0
    done: int = 0  # the last step after which everything that follows a step was done: a stop may come in between
    taken: dict[str, int] = field(default_factory=dict)  # batches of every task so far, unreadable ones included
    loss_sum: dict[str, float] = field(
        default_factory=dict
    )  # of every task's images since the last line of the history
    images: dict[str, int] = field(default_factory=dict)
    best: float = -1.0  # of the figure that chooses the weights, percent
    best_epoch: int = 0
    best_step: int = 0

    def advance(self, losses: Sequence[tuple[str, float, int]], taken: Mapping[str, int]) -> None:
        """One step further. `losses`: of each batch its task, the mean over its images, and their number."""
        self.taken = dict(taken)
        for name, loss, images in losses:
            self.loss_sum[name] = self.loss_sum.get(name, 0.0) + loss * images
            self.images[name] = self.images.get(name, 0) + images
        self.step += 1

    def mean_losses(self) -> dict[str, float]:
        return {name: total / max(self.images[name], 1) for name, total in self.loss_sum.items()}

    def forget_losses(self) -> None:
        self.loss_sum, self.images = {}, {}


def state_of(
    values: Mapping[str, Any], tasks: Sequence[str], batches: Mapping[str, int], phase: int, before: int
) -> State:
    """What a checkpoint of this phase holds. `batches`: of an epoch of each task; `before`: steps of earlier phases."""
    told = dict(values["position"])
    if "done" in told:
        return State(**told)
    if "looked" in told:  # of several tasks, by an earlier version
        means = {name: total / max(told["loss_steps"][name], 1) for name, total in told["loss_sum"].items()}
        step, done = told["step"] - before, told["looked"] - before
        return State(phase, step, done, told["taken"], means, dict.fromkeys(means, 1))
    whole = batches[tasks[0]]  # of one task
    epoch, batch, step = told["epoch"], told["batch"], told["step"]
    sums, images = ({tasks[0]: told["loss_sum"]}, {tasks[0]: told["images"]}) if batch else ({}, {})
    done = step - 1 if batch == whole else step  # after an epoch's last batch, what follows is still to be done
    taken = {tasks[0]: epoch * whole + batch}
    return State(phase, step, done, taken, sums, images, told["best"], told["best_epoch"])


def today(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a checkpoint or bundle under the names that they have now."""
    found = {}
    for name, tensor in tensors.items():
        before, part = "", name
        for prefix in ("model.", "ema."):
            if name.startswith(prefix):
                before, part = prefix, name.removeprefix(prefix)
        found[f"{before}{_renamed(part)}"] = tensor
    return {name: tensor for name, tensor in found.items() if name not in ("mean", "std", "model.mean", "model.std")}


def _renamed(name: str) -> str:
    if name.startswith(("vit.", "selection.")):
        return f"backbone.body.{name}"
    for old, new in (("head.", f"heads.{LABELS}."), ("neck.", f"necks.{LABELS}.")):
        if name.startswith(old):
            return f"{new}{name.removeprefix(old)}"
    return name

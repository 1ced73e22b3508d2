"""Where a run is, as a checkpoint and back: weights, optimiser, schedule, averaged weights, and what the loop adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from manylabel.error import CheckpointError
from manylabel.training.checkpoint import (
    Checkpoint,
    CheckpointFolder,
    clone,
    load_trained_state,
    pack_optimiser,
    trained_state,
    unpack_optimiser,
    with_prefix,
    without_prefix,
)
from manylabel.training.ema import Ema


def snapshot(
    model: nn.Module, optimiser: Optimizer, schedule: LRScheduler, ema: Ema | None, values: dict[str, Any]
) -> Checkpoint:
    packed = pack_optimiser(optimiser)
    tensors = with_prefix("model", trained_state(model)) | packed.tensors
    if ema:
        tensors |= with_prefix("ema", ema.average)
    own = {"optimiser": packed.values, "schedule": schedule.state_dict(), "ema_steps": ema.steps if ema else 0}
    return Checkpoint(tensors, {**own, **values})


def newest(checkpoints: CheckpointFolder, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; None = there is none yet, perhaps since the first one was not finished.
    Damaged ones are named; all damaged is an error."""
    for path in checkpoints.swept:
        say(f"removed {path.name}, which was left half-written")
    found, problems = checkpoints.load_latest()
    for problem in problems:
        say(f"{problem}; falling back to the one before" if checkpoints.finished else problem)
    if found is None:
        if checkpoints.finished:
            raise CheckpointError(f"no checkpoint in {checkpoints.folder} is whole: {problems[0]}")
        say("there is no checkpoint yet: starting from the beginning")
    return found


def restore_model(found: Checkpoint, model: nn.Module, ema: Ema | None) -> None:
    load_trained_state(model, without_prefix("model", found.tensors))
    if ema:
        ema.steps = found.values["ema_steps"]
        for name, tensor in without_prefix("ema", found.tensors).items():
            ema.average[name].copy_(tensor)


def restore_optimiser(found: Checkpoint, optimiser: Optimizer, schedule: LRScheduler) -> None:
    unpack_optimiser(optimiser, Checkpoint(found.tensors, found.values["optimiser"]))
    schedule.load_state_dict(found.values["schedule"])


def use_average(model: nn.Module, ema: Ema) -> None:
    """Let the averaged weights be the model's own."""
    load_trained_state(model, clone(trained_state(model)) | ema.average)

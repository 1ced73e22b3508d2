"""Several processes that train one model: how they begin, agree to stop, and take leave."""

from __future__ import annotations

import atexit
from datetime import timedelta
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import InitProcessGroupKwargs, broadcast_object_list

from manylabel.stop import StopRequest

T = TypeVar("T")


def make_accelerator(**options: Any) -> Accelerator:
    """An Accelerator with exactly these options: one made earlier in this process must not lend it its precision."""
    AcceleratorState._reset_state()
    patience = InitProcessGroupKwargs(timeout=timedelta(days=1))  # one process computes features, the others wait
    accelerator = Accelerator(kwargs_handlers=[patience], **options)
    if accelerator.num_processes > 1:
        atexit.unregister(_leave)
        atexit.register(_leave)
    return accelerator


def _leave() -> None:
    """Take leave of the other processes before the interpreter ends: threads that still run would abort it."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def from_main(value: T, accelerator: Accelerator) -> T:
    """What the main process has under this name, in all of them."""
    return broadcast_object_list([value])[0] if accelerator.num_processes > 1 else value


def asked_to_stop(stop: StopRequest, accelerator: Accelerator) -> int | None:
    """The signal that asked any of the processes to stop: all of them stop after the same batch."""
    if accelerator.num_processes == 1:
        return stop.signal
    number = torch.tensor([stop.signal or 0], device=accelerator.device)
    torch.distributed.all_reduce(number, torch.distributed.ReduceOp.MAX)
    return int(number) or None

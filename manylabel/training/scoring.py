"""A model's scores for every image of a feed, gathered over processes."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import gather_object
from torch import nn

from manylabel.data.dataset import Batch
from manylabel.task import MULTI_LABEL, Task


def make_accelerator(**options: Any) -> Accelerator:
    """An Accelerator with exactly these options: one made earlier in this process must not lend it its precision."""
    AcceleratorState._reset_state()
    accelerator = Accelerator(**options)
    if accelerator.num_processes > 1:
        atexit.unregister(_leave)
        atexit.register(_leave)
    return accelerator


def _leave() -> None:
    """Take leave of the other processes before the interpreter ends: threads that still run would abort it."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@torch.inference_mode()
def score(
    model: nn.Module,
    batches: Iterable[Batch],
    accelerator: Accelerator,
    task: Task = MULTI_LABEL,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[np.ndarray, np.ndarray, list[tuple[str, str]]]:
    """rows [n] ascending, probabilities [n, N] float32, and (key, reason) of images that could not be read."""
    model.eval()
    rows, scores, bad = [], [], []
    for batch in batches:
        bad += batch.bad
        if len(batch):
            with accelerator.autocast():
                logits = model(batch.inputs.to(accelerator.device))
            rows.append(batch.rows.numpy())
            scores.append(task.probabilities(logits).cpu().numpy())
        advance(len(batch) + len(batch.bad))
    mine = (np.concatenate(rows) if rows else np.empty(0, np.int64), np.concatenate(scores) if scores else None, bad)
    parts = gather_object([mine]) if accelerator.num_processes > 1 else [mine]
    all_rows = np.concatenate([part[0] for part in parts])
    filled = [part[1] for part in parts if part[1] is not None]
    all_scores = np.concatenate(filled) if filled else np.empty((0, 0), np.float32)
    order = np.argsort(all_rows, kind="stable")
    return all_rows[order], all_scores[order], [pair for part in parts for pair in part[2]]

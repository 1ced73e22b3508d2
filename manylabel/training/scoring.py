"""A model's scores for every image of a feed, gathered over processes."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import InitProcessGroupKwargs, gather_object

from manylabel.data.dataset import Batch
from manylabel.mixing import Shares
from manylabel.model import Model
from manylabel.task import MULTI_LABEL, Task


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


@dataclass(frozen=True)
class Scored:
    """What a model said of the images of a feed."""

    rows: np.ndarray  # [n] ascending
    scores: np.ndarray  # [n, N] float32 probabilities
    bad: list[tuple[str, str]]  # key and reason of images that could not be read
    shares: Shares | None  # of earlier stages in the mix, for necks that mix


@torch.inference_mode()
def score(
    model: Model,
    batches: Iterable[Batch],
    accelerator: Accelerator,
    task: Task = MULTI_LABEL,
    advance: Callable[[int], None] = lambda _: None,
) -> Scored:
    model.eval()
    rows, scores, shares, bad = [], [], [], []
    for batch in batches:
        bad += batch.bad
        if len(batch):
            logits = model.logits(batch.inputs.to(accelerator.device))  # in full precision, as predictions are made
            rows.append(batch.rows.numpy())
            scores.append(task.probabilities(logits).cpu().numpy())
            shares.append({k: v.float().cpu().numpy() for k, v in (model.neck.last_shares or {}).items()})
        advance(len(batch) + len(batch.bad))
    mine = (rows, scores, shares, bad)
    parts = gather_object([mine]) if accelerator.num_processes > 1 else [mine]
    all_rows = np.concatenate([np.empty(0, np.int64), *(r for part in parts for r in part[0])])
    order = np.argsort(all_rows, kind="stable")
    found = [s for part in parts for s in part[1]]
    mixes = [m for part in parts for m in part[2]]
    return Scored(
        all_rows[order],
        np.concatenate(found)[order] if found else np.empty((0, 0), np.float32),
        [pair for part in parts for pair in part[3]],
        {k: np.concatenate([m[k] for m in mixes])[order] for k in mixes[0]} if mixes and mixes[0] else None,
    )

"""A model's scores for every image of a feed, gathered over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from manylabel.data.dataset import Batch
from manylabel.mixing import Shares
from manylabel.model import Model
from manylabel.task import MULTI_LABEL, Task


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

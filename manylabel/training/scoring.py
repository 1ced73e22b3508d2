"""A model's scores for every image of a feed, gathered over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from manylabel.core.trace import Trace
from manylabel.data.dataset import Batch
from manylabel.expert import ExpertUse, GateLoad
from manylabel.mixing import Shares
from manylabel.model import Model
from manylabel.task import MULTI_LABEL, Classification, Scores


@dataclass(frozen=True, eq=False)
class Scored(Scores):
    """What a model said of the images of a feed."""

    bad: list[tuple[str, str]]  # key and reason of images that could not be read
    shares: Shares | None  # of earlier stages in the mix, for necks that mix
    use: ExpertUse | None = None  # of the experts of heads that have some


@torch.inference_mode()
def score(
    model: Model,
    batches: Iterable[Batch],
    accelerator: Accelerator,
    task: Classification = MULTI_LABEL,
    advance: Callable[[int], None] = lambda _: None,
) -> Scored:
    model.eval()
    load, mine = GateLoad(model.head.gates), _Found()
    for batch in batches:
        mine.bad += batch.bad
        if len(batch):
            trace = Trace(gates=[], shares={})
            output = model.compute(batch.inputs.to(accelerator.device), trace)  # in full precision, as predictions are
            mine.evidence.append(task.evidence(output, batch))
            mine.shares.append({k: v.float().cpu().numpy() for k, v in (trace.shares or {}).items()})
            load.add(trace.gates or [])
        advance(len(batch) + len(batch.bad))
    mine.use = load.use()
    return _together(gather_object([mine]) if accelerator.num_processes > 1 else [mine])


@dataclass
class _Found:
    """What one process found, batch by batch."""

    evidence: list[Scores] = field(default_factory=list)
    shares: list[dict[str, np.ndarray]] = field(default_factory=list)
    bad: list[tuple[str, str]] = field(default_factory=list)
    use: ExpertUse | None = None


def _together(parts: Sequence[_Found]) -> Scored:
    evidence = [one for part in parts for one in part.evidence]
    mixes = [m for part in parts for m in part.shares]
    found = Scores.joined(evidence)
    return Scored(
        found.rows,
        found.scores,
        [pair for part in parts for pair in part.bad],
        _in_order(mixes, evidence) if mixes and mixes[0] else None,
        ExpertUse.together(part.use for part in parts),
    )


def _in_order(shares: Sequence[Shares], evidence: Sequence[Scores]) -> Shares:
    """Batch by batch → of all images, in the order of the rows."""
    order = np.argsort(np.concatenate([one.rows for one in evidence]), kind="stable")
    return {stage: np.concatenate([one[stage] for one in shares])[order] for stage in shares[0]}

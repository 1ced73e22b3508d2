"""What a model says of every image of a feed, gathered over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from manylabel.core.evidence import Evidence, Scores, together
from manylabel.core.trace import Trace
from manylabel.data.dataset import Batch
from manylabel.expert import ExpertUse, GateLoad
from manylabel.mixing import Shares
from manylabel.model import TaskModel
from manylabel.task import MULTI_LABEL, AnyTask


@dataclass(frozen=True, eq=False)
class Scored:
    """What a model said of the images of a feed, and what happened on the way."""

    evidence: Evidence
    bad: list[tuple[str, str]]  # key and reason of images that could not be read
    shares: Shares | None = None  # of earlier stages in the mix, for necks that mix
    use: ExpertUse | None = None  # of the experts of heads that have some

    @property
    def rows(self) -> np.ndarray:
        """[n] of the table that could be read"""
        return self.evidence.rows

    @property
    def finite(self) -> bool:
        return self.evidence.finite

    @property
    def scores(self) -> np.ndarray:
        """Of a task with labels. [n, N]"""
        assert isinstance(self.evidence, Scores)
        return self.evidence.scores


@torch.inference_mode()
def score(
    model: TaskModel,
    batches: Iterable[Batch],
    accelerator: Accelerator,
    task: AnyTask = MULTI_LABEL,
    advance: Callable[[int], None] = lambda _: None,
) -> Scored:
    """In full precision, as predictions are."""
    model.eval()
    gates = model.head.gates
    load, mine = GateLoad(gates, model.head.expert_similarity() if gates else ()), _Found()
    for batch in batches:
        mine.bad += batch.bad
        if len(batch):
            trace = Trace(gates=[], shares={})
            output = model(batch.inputs.to(accelerator.device), trace=trace)
            mine.evidence.append(task.evidence(output, batch))
            mine.shares.append({k: v.float().cpu().numpy() for k, v in (trace.shares or {}).items()})
            load.add(trace.gates or [])
        advance(len(batch) + len(batch.bad))
    mine.use = load.use()
    return _together(gather_object([mine]) if accelerator.num_processes > 1 else [mine])


@dataclass
class _Found:
    """What one process found, batch by batch."""

    evidence: list[Evidence] = field(default_factory=list)
    shares: list[dict[str, np.ndarray]] = field(default_factory=list)
    bad: list[tuple[str, str]] = field(default_factory=list)
    use: ExpertUse | None = None


def _together(parts: Sequence[_Found]) -> Scored:
    evidence = [one for part in parts for one in part.evidence]
    mixes = [m for part in parts for m in part.shares]
    return Scored(
        together(evidence) if evidence else Scores.joined([]),
        [pair for part in parts for pair in part.bad],
        _in_order(mixes, evidence) if mixes and mixes[0] else None,
        ExpertUse.together(part.use for part in parts),
    )


def _in_order(shares: Sequence[Shares], evidence: Sequence[Evidence]) -> Shares:
    """Batch by batch → of all images, in the order of the rows."""
    order = np.argsort(np.concatenate([one.rows for one in evidence]), kind="stable")
    return {stage: np.concatenate([one[stage] for one in shares])[order] for stage in shares[0]}

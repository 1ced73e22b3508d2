"""Where the query of a label looks, laid out on the grids of its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manylabel.core.trace import Trace
from manylabel.features import Features
from manylabel.model import TaskModel

QUERIES = 20_000  # at a time, of all images together: the weights of every query are computed to choose from


@torch.no_grad()
def attention_grids(model: TaskModel, features: Features, columns: Tensor, stages: Sequence[str]) -> dict[str, Tensor]:
    """Weights of every attention head of the queries of labels `columns` [B, L]: stage → [B, L, h, rows, columns]."""
    query = model.head.query_of_label
    assert query is not None
    size = max(1, QUERIES // (int(query.max()) + 1))
    blocks = [slice(start, start + size) for start in range(0, len(columns), size)]
    parts = [_block(model, features.part(block), columns[block], query) for block in blocks]
    return {stage: torch.cat([part[stage] for part in parts]) for stage in stages}


def _block(model: TaskModel, features: Features, columns: Tensor, query: Tensor) -> dict[str, Tensor]:
    trace = Trace(attention=[])
    model.answer(features, trace=trace)
    assert trace.attention
    looked = trace.attention[0]
    chosen = query.to(columns.device)[columns]  # [B, L]
    each = torch.arange(len(columns), device=columns.device)[:, None]
    weights = looked.weights.transpose(1, 2)[each, chosen].float()  # [B, L, h, T]
    parts = weights.split([rows * width for rows, width in looked.grids.values()], dim=-1)
    return {stage: part.unflatten(-1, grid) for (stage, grid), part in zip(looked.grids.items(), parts, strict=True)}

"""Where the query of a label looks, laid out on the grids of its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manylabel.features import Features
from manylabel.model import Model

QUERIES = 20_000  # at a time, of all images together: the weights of every query are computed to choose from


@torch.no_grad()
def attention_grids(model: Model, features: Features, columns: Tensor, stages: Sequence[str]) -> dict[str, Tensor]:
    """Weights of every attention head of the queries of labels `columns` [B, L]: stage → [B, L, h, rows, columns]."""
    query = model.head.query_of_label
    assert query is not None
    size = max(1, QUERIES // (int(query.max()) + 1))
    blocks = [slice(start, start + size) for start in range(0, len(columns), size)]
    parts = [_block(model, _some(features, block), columns[block], query) for block in blocks]
    return {stage: torch.cat([part[stage] for part in parts]) for stage in stages}


def seen_by_head(model: Model, features: Features) -> Features:
    """What the neck gives the head; the first, where it asks the head several times: the others have no places."""
    given: list[Features] = []

    def keep(seen: Features) -> Tensor:
        given.append(seen)
        return seen.final.new_zeros(len(seen.final), model.head.num_labels)

    model.neck.logits(keep, features)
    return given[0]


def _some(features: Features, block: slice) -> Features:
    prefix = None if features.prefix is None else features.prefix[block]
    return Features({name: stage[block] for name, stage in features.stages.items()}, prefix)


def _block(model: Model, features: Features, columns: Tensor, query: Tensor) -> dict[str, Tensor]:
    look = model.head.look(seen_by_head(model, features))
    assert look is not None
    chosen = query.to(columns.device)[columns]  # [B, L]
    each = torch.arange(len(columns), device=columns.device)[:, None]
    weights = look.weights.transpose(1, 2)[each, chosen].float()  # [B, L, h, T]
    parts = weights.split([rows * width for rows, width in look.grids.values()], dim=-1)
    return {stage: part.unflatten(-1, grid) for (stage, grid), part in zip(look.grids.items(), parts, strict=True)}

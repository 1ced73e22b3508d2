"""How alike the experts are that a gate chooses among: where they are all the same, no choice changes anything."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manylabel.expert.bank import ExpertBank


@torch.no_grad()
def expert_similarity(shared: ExpertBank | None, own: ExpertBank | None) -> float:
    """Mean cosine of the weights of two of a gate's n experts, over its pairs and over all gates; 1 = all the same.

    Σ_{i≠j} û_i·û_j = ‖Σ_i û_i‖² − n, so that no pair is computed. MLPs are compared unit by unit, as they stand.
    """
    count = sum(bank.count for bank in (shared, own) if bank is not None)
    total = sum(_directions(bank).sum(dim=1) for bank in (shared, own) if bank is not None)  # [G, d], or [1, d] alone
    pairs = (torch.as_tensor(total).square().sum(dim=-1) - count) / (count * (count - 1))  # [G]
    return float(pairs.mean())


def _directions(bank: ExpertBank) -> Tensor:
    """Each expert's weights as one vector of length 1. [G, n, d]"""
    weights = bank.weight.movedim(2, 1).flatten(2)
    if bank.hidden is not None:
        second = bank.weight2.unflatten(0, (bank.owners, bank.count)).flatten(2)
        weights = torch.cat([weights, second], dim=-1)
    return normalize(weights.float(), dim=-1)

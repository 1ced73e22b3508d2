"""What keeps a router from sending everything to a few experts: the losses of V-MoE, and the router z-loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manylabel.expert.router import Routing


def importance_loss(routing: Routing) -> Tensor:
    """CV² of Imp_i = Σ_x softmax(g(x))_i, without noise."""
    return cv_squared(routing.probability.sum(dim=0))


def load_loss(routing: Routing) -> Tensor:
    """CV² of Load_i = mean_x P_i(x), P_i the probability that expert i passes the token's threshold if ε_i is drawn anew.

    The threshold is the k-th highest noisy logit. Without noise an expert either was chosen or was not; such a load has a
    value, and no gradient.
    """
    if routing.noise == 0:
        chosen = routing.expert.flatten().bincount(minlength=routing.experts)  # [E]
        return cv_squared(chosen.to(routing.logits.dtype))
    threshold = routing.noisy.topk(routing.k).values[:, -1:]  # [T, 1]
    p = _above((threshold - routing.logits) / routing.noise)  # [T, E] 1 − Φ(…)
    return cv_squared(p.sum(dim=0))  # a sum for the mean: CV² is the same, and no tokens are no division by zero


def z_loss(routing: Routing) -> Tensor:
    """mean_x (log Σ_i exp g(x)_i)²: keeps logits small."""
    return routing.logits.logsumexp(dim=-1).square().sum() / max(len(routing.logits), 1)


def cv_squared(x: Tensor) -> Tensor:
    """(std / mean)² with the population's std; 0 if nothing is there. From the variance: a std of 0 has no gradient."""
    return x.var(correction=0) / x.mean().square().clamp(min=torch.finfo(x.dtype).tiny)


def _above(z: Tensor) -> Tensor:
    """1 − Φ(z), by erfc, which keeps its digits far out."""
    return 0.5 * torch.erfc(z / math.sqrt(2))

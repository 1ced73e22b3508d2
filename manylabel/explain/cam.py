"""Class activation maps: a stage's map A [B, C, H, W], weighted by what its channels do for a label's logit.

g = ∂ logit / ∂ A [B, C, H, W]. Each function gives [B, H, W] that are 0 or more.
"""

from __future__ import annotations

import torch
from torch import Tensor


def grad_cam(a: Tensor, g: Tensor) -> Tensor:
    """ReLU(Σ_k w_k A_k) with w_k the mean of g_k over places (Selvaraju et al. 2017)."""
    return _weighted(g.mean(dim=(2, 3)), a)


def grad_cam_pp(a: Tensor, g: Tensor) -> Tensor:
    """ReLU(Σ_k w_k A_k) with w_k = Σ_ij α_kij ReLU(g_kij), α_kij = g² / (2 g² + g³ Σ_ab A_kab) (Chattopadhyay et al. 2018).

    Only g > 0 counts, where α g = g / (2 + g Σ A). The formula is made for maps without negative values, so the sum is of
    A's positive part: the fraction then has no pole.
    """
    total = a.clamp(min=0).sum(dim=(2, 3), keepdim=True)  # [B, C, 1, 1]
    positive = g.clamp(min=0)
    return _weighted((positive / (2 + positive * total)).sum(dim=(2, 3)), a)


def eigen_cam(a: Tensor) -> Tensor:
    """ReLU(A v₁) with v₁ the first right singular vector of A as places × channels (Muhammad and Yeasin 2020).

    It knows no label. A singular vector has no sign: it is turned so that the map is positive where activations are strong.
    """
    places = a.flatten(2).transpose(1, 2).double()  # [B, H·W, C]
    if places.shape[1] <= places.shape[2]:
        values, vectors = torch.linalg.eigh(places @ places.transpose(1, 2))
        along = vectors[..., -1] * values[..., -1:].clamp(min=0).sqrt()  # u₁ σ₁ = A v₁
    else:
        _, vectors = torch.linalg.eigh(places.transpose(1, 2) @ places)
        along = (places @ vectors[..., -1:])[..., 0]
    agreement = (along * places.norm(dim=2)).sum(dim=1, keepdim=True)
    along = torch.where(agreement < 0, -along, along)
    return along.clamp(min=0).to(a.dtype).unflatten(1, a.shape[2:])


def _weighted(weights: Tensor, a: Tensor) -> Tensor:
    """ReLU(Σ_k w_k A_k): weights [B, C]"""
    return torch.einsum("bc,bchw->bhw", weights, a).clamp(min=0)

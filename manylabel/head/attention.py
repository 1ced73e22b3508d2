"""Multi-head attention (ML-Decoder, Eq. 1) and the feed-forward block: the parts that every query head is made of."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    """MultiHeadAttn(Q, K, V) = Concat(head_1 … head_h) W^O with head_i = Softmax(Q W_i^Q (K W_i^K)ᵀ / √d) V W_i^V.

    Queries that are the same for every image come as [Q, D]: they are projected once, not once per image.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout  # of the attention weights
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)
        for layer in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(layer.weight)
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.zeros_(layer.bias)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """queries [Q, D] or [B, Q, D], keys and values [B, T, D] → [B, Q, D]; all three without B → [Q, D]"""
        q = self._split(self.query(queries))  # [h, Q, d] or [B, h, Q, d]
        k, v = self._split(self.key(keys)), self._split(self.value(values))  # [B, h, T, d]
        alone = k.ndim == 3
        if alone:
            q, k, v = q[None], k[None], v[None]
        elif q.ndim == 3:
            q = q.expand(k.shape[0], -1, -1, -1)  # not len(k), which an export would take for a constant
        pooled = scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        out: Tensor = self.out(pooled.transpose(1, 2).flatten(2))  # [B, Q, D]
        return out[0] if alone else out

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Where each head of each query looks. [B, h, Q, T], each row adds up to 1"""
        q, k = self._split(self.query(queries)), self._split(self.key(keys))
        return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)

    def _split(self, x: Tensor) -> Tensor:
        split: Tensor = x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)  # [..., n, D] → [..., h, n, d]
        return split


class FeedForward(nn.Sequential):
    """FF(x) = W₂ drop(ReLU(W₁ x))"""

    def __init__(self, dim: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Linear(dim, hidden), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(hidden, dim))

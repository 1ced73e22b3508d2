"""Group fully-connected: every group query becomes the logits of its labels (ML-Decoder, Eq. 3 and appendix K)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manylabel.head.prior import Prior


class GroupLinear(nn.Module):
    """L_i = (W_k · Q_k)_j + b_i with k = slot_i div g, j = slot_i mod g: one batched product over the groups.

    `shared` sets W_k = W and one bias for all, so that it serves labels that were never trained (section 2.3.3). With
    more groups of queries than weights, those behind the trained ones take the weights from the first again (Table 8).
    """

    def __init__(self, num_labels: int, groups: int, size: int, dim: int, shared: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1 if shared else groups, dim, size))
        self.bias = nn.Parameter(torch.zeros(1 if shared else num_labels))
        self.shared = shared
        nn.init.xavier_normal_(self.weight)

    def expect(self, prior: Prior) -> None:
        self.bias.fill_(prior.mean) if self.shared else self.bias.copy_(prior.labels)

    def forward(self, queries: Tensor, slot: Tensor, label: Tensor | None = None) -> Tensor:
        """queries [B, K, D], slot [n], label [n] (whose bias; none for the last number and above) → logits [B, n]"""
        if self.shared:
            out = queries @ self.weight[0]  # [B, K, g]
        else:
            weight = around(self.weight, 0, queries.shape[1])  # [K, D, g]
            out = torch.bmm(queries.transpose(0, 1), weight).transpose(0, 1)  # [B, K, g]
        bias: Tensor = self.bias
        if label is not None and not self.shared:
            bias = torch.cat([bias, bias.new_zeros(1)])[label]
        return out.flatten(1).index_select(1, slot) + bias  # padded places are in no label's slot


def around(x: Tensor, dim: int, count: int) -> Tensor:
    """At least so many along a dimension, from the first again where there are fewer."""
    have = x.shape[dim]
    return x if have >= count else x.index_select(dim, torch.arange(count, device=x.device) % have)

"""Labels as text vectors: what lets a head answer for labels that it was never trained with (ML-Decoder, section 2.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manylabel.head.grouping import group_size
from manylabel.head.prior import Prior


@dataclass(frozen=True)
class Asked:
    """The labels of one forward pass."""

    words: Tensor  # [n, d_w]
    slot: Tensor  # [n]: where each sits among the groups
    random: int = 0  # so many at the end are random vectors, no labels


class Words(nn.Module):
    """The vectors N_i of all labels, of one length, with the two query augmentations of the paper.

    Training asks for the seen labels only; everything else asks for all. `noise` adds σ·N(0, 1) to the vectors of each
    batch, `random` appends so many random vectors, which the head shall recognise as noise.
    """

    vectors: Tensor  # [N, d], as the embedder gives them, with entries of mean square 1
    anchors: Tensor  # [S, d], of the seen labels; [0, d] where vectors are used as they are
    words: Tensor  # [N, d_w]: N_i
    slot: Tensor  # [N]
    seen: Tensor  # [S]: which labels training asks for
    seen_slot: Tensor  # [S]

    def __init__(
        self,
        vectors: np.ndarray,
        anchors: np.ndarray,
        temperature: float,
        slot: np.ndarray,
        seen: np.ndarray,
        seen_slot: np.ndarray,
        noise: float,
        random: int,
    ) -> None:
        super().__init__()
        self.noise, self.random = noise, random
        self.register_buffer("vectors", one_length(torch.as_tensor(vectors)))
        self.register_buffer("anchors", one_length(torch.as_tensor(anchors)))
        words = mixture(self.vectors, self.anchors, temperature) if len(anchors) else self.vectors.clone()
        self.register_buffer("words", words)
        for name, values in (("slot", slot), ("seen", seen), ("seen_slot", seen_slot)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.int64))

    @property
    def size(self) -> int:
        return self.words.shape[1]

    def forward(self) -> Asked:
        if not self.training:
            return Asked(self.words, self.slot)
        words, slot = self.words[self.seen], self.seen_slot
        if self.noise:
            words = words + self.noise * torch.randn_like(words)
        if self.random:
            words = torch.cat([words, torch.randn_like(words[:1].expand(self.random, -1))])
            slot = torch.cat([slot, torch.arange(len(slot), len(slot) + self.random, device=slot.device)])
        return Asked(words, slot, self.random)


def mixture(vectors: Tensor, anchors: Tensor, temperature: float) -> Tensor:
    """Each label as a mixture of the seen ones: softmax of its cosine to them over the temperature. [N, d], [S, d] → [N, S]

    A new label's vector points mostly where no seen label does, and there training says nothing; as a mixture it asks for
    what its neighbours in meaning ask for.
    """
    cosine = vectors @ anchors.T / vectors.shape[1]  # entries of mean square 1: lengths are √d
    return one_length(torch.softmax(cosine / temperature, dim=1))


def one_length(vectors: Tensor) -> Tensor:
    """Each vector scaled to entries of mean square 1, so that noise has the same meaning for every source."""
    rows = vectors.float()
    if not len(rows):
        return rows
    return rows / rows.square().mean(dim=1, keepdim=True).sqrt().clamp(min=1e-6)


class WordQueries(nn.Module):
    """q_i = ReLU(W N_i + b) with a query per label; q_k = concat({W_a N_i} of its labels) with groups (Eq. 5)."""

    def __init__(self, word_dim: int, dim: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.project = nn.Linear(word_dim, dim // size, bias=size == 1)  # W_a: [d/g, d_w]

    def forward(self, asked: Asked) -> Tensor:
        """→ [K, D]"""
        parts = self.project(asked.words)  # [n, D/g]
        if self.size == 1:
            return torch.relu(parts)
        groups = group_size(len(asked.words), self.size)
        return in_slots(parts, asked.slot, groups, self.size).flatten(1)  # [K, g, D/g] → [K, D]


class WordLinear(nn.Module):
    """W_k = W_b · M_k (Eq. 6): a label's weights come from its word vector, so L_i = Q_k · (W_b N_i) + b."""

    def __init__(self, word_dim: int, dim: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.project = nn.Linear(word_dim, dim, bias=False)  # W_b
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.normal_(self.project.weight, std=(word_dim * dim) ** -0.5)  # logits of order 1

    def expect(self, prior: Prior) -> None:
        self.bias.fill_(prior.mean)

    def forward(self, queries: Tensor, asked: Asked) -> Tensor:
        """queries [B, K, D] → logits [B, n]"""
        m = in_slots(self.project(asked.words), asked.slot, queries.shape[1], self.size)  # [K, g, D]
        out = torch.bmm(queries.transpose(0, 1), m.transpose(1, 2)).transpose(0, 1)  # [B, K, g]
        return out.flatten(1).index_select(1, asked.slot) + self.bias


def in_slots(rows: Tensor, slot: Tensor, groups: int, size: int) -> Tensor:
    """Each label's row at its place in its group, zeros where no label is. [n, d] → [K, g, d]"""
    places: Any = rows.new_zeros(groups * size, rows.shape[1])
    placed: Tensor = places.index_copy(0, slot, rows).unflatten(0, (groups, size))
    return placed

"""Labels as text vectors: what lets a head answer for labels that it was never trained with (ML-Decoder, section 2.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manylabel.head.grouping import group_size
from manylabel.head.prior import Prior
from manylabel.head.seats import Seats


@dataclass(frozen=True)
class Asked:
    """The labels of one forward pass, and whose words are in their queries."""

    words: Tensor  # [m, d_w]
    places: Tensor  # [m]: where each word sits among the groups
    slot: Tensor  # [n]: the places that are asked for
    groups: int
    trained: Tensor | None = None  # [n]: which trained label each is, S = none; None = they are the trained ones
    random: int = 0  # so many of those asked for, at the end, are random vectors and no labels


@dataclass(frozen=True)
class QueryAugmentation:
    """What happens to the text vectors of each training batch."""

    noise: float = 0.0  # σ of N(0, 1) that is added
    random: int = 0  # so many random vectors more, which the head shall recognise as such
    cutout: float = 0.0  # share of the entries that are deleted


class Words(nn.Module):
    """The vectors N_i of all labels, of one length, with the query augmentations of the paper.

    Training asks for the seen labels only; everything else asks for all. `company` are the trained labels of a model that
    was given others since: their words stay in the queries that they share.
    """

    vectors: Tensor  # [N, d], as the embedder gives them, with entries of mean square 1
    anchors: Tensor  # [S, d], of the seen labels; [0, d] where vectors are used as they are
    words: Tensor  # [N, d_w]: N_i
    slot: Tensor  # [N]
    seen: Tensor  # [S]: which labels training asks for
    seen_slot: Tensor  # [S]
    trained: Tensor  # [N]: see Asked
    company: Tensor  # [S, d_w] or [0, d_w]
    company_slot: Tensor  # [S] or [0]

    def __init__(
        self,
        vectors: np.ndarray,
        anchors: np.ndarray,
        temperature: float,
        seats: Seats,
        augmentation: QueryAugmentation,
        company: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.augmentation, self.size = augmentation, seats.size
        self.groups, self.trained_groups = seats.groups, seats.trained_groups
        self.register_buffer("vectors", one_length(torch.as_tensor(vectors)))
        self.register_buffer("anchors", one_length(torch.as_tensor(anchors)))
        self.register_buffer("words", self._words(self.vectors, temperature))
        seen = np.flatnonzero(seats.trained < len(seats.trained_slot)) if company is None else np.arange(len(vectors))
        seen_slot = seats.trained_slot if company is None else seats.slot
        for name, values in (("slot", seats.slot), ("seen", seen), ("seen_slot", seen_slot)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.int64))
        # what follows from the others, or belongs to labels that nobody stores
        grouped = company is not None and seats.size > 1
        beside = one_length(torch.as_tensor(company)) if grouped else self.vectors[:0]
        self.register_buffer("company", self._words(beside, temperature), persistent=False)
        company_slot = seats.trained_slot if grouped else seats.trained_slot[:0]
        for name, values in (("company_slot", company_slot), ("trained", seats.trained)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.int64), persistent=False)

    def _words(self, vectors: Tensor, temperature: float) -> Tensor:
        return mixture(vectors, self.anchors, temperature) if len(self.anchors) else vectors.clone()

    @property
    def width(self) -> int:
        """d_w"""
        return self.words.shape[1]

    def forward(self) -> Asked:
        if not self.training:
            return self._asked(self.words, self.slot, self.groups)
        words, slot, augmentation = self.words[self.seen], self.seen_slot, self.augmentation
        groups = self.groups if len(self.company) else self.trained_groups
        if augmentation.noise:
            words = words + augmentation.noise * torch.randn_like(words)
        if augmentation.cutout:
            words = words * (torch.rand_like(words) >= augmentation.cutout)
        random = augmentation.random
        if random:  # in groups of their own, like every label that is not trained
            words = torch.cat([words, torch.randn_like(words[:1].expand(random, -1))])
            first = groups * self.size
            slot = torch.cat([slot, torch.arange(first, first + random, device=slot.device)])
            groups += group_size(random, self.size)
        return self._asked(words, slot, groups, random)

    def _asked(self, words: Tensor, slot: Tensor, groups: int, random: int = 0) -> Asked:
        if len(self.company):
            places = torch.cat([slot, self.company_slot])
            return Asked(torch.cat([words, self.company]), places, slot, groups, self.trained, random)
        trained = self.trained if len(slot) > len(self.seen) and not random else None
        return Asked(words, slot, slot, groups, trained, random)


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
        parts = self.project(asked.words)  # [m, D/g]
        if self.size == 1:
            return torch.relu(parts)
        return in_slots(parts, asked.places, asked.groups, self.size).flatten(1)  # [K, g, D/g] → [K, D]


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
        m = in_slots(self.project(asked.words), asked.places, queries.shape[1], self.size)  # [K, g, D]
        out = torch.bmm(queries.transpose(0, 1), m.transpose(1, 2)).transpose(0, 1)  # [B, K, g]
        return out.flatten(1).index_select(1, asked.slot) + self.bias


def in_slots(rows: Tensor, slot: Tensor, groups: int, size: int) -> Tensor:
    """Each label's row at its place in its group, zeros where no label is. [n, d] → [K, g, d]"""
    places: Any = rows.new_zeros(groups * size, rows.shape[1])
    placed: Tensor = places.index_copy(0, slot, rows).unflatten(0, (groups, size))
    return placed

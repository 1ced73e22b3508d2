"""ML-Decoder with words: queries and classifiers made from text vectors, so that it answers for labels nobody trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head.base import NOTHING, LabelKnowledge
from manylabel.head.group_decoder import GroupDecoder, MLDecoderOptions
from manylabel.head.group_linear import GroupLinear, around
from manylabel.head.grouping import slots
from manylabel.head.prior import Prior
from manylabel.head.seats import Seats, behind, known_among
from manylabel.head.words import Asked, QueryAugmentation, WordLinear, WordQueries, Words, one_length


class TextMLDecoder(GroupDecoder):
    """G_q from words (Eq. 5), weights of the group FC from words (Eq. 6), or both; zero-shot where nothing is a label's own.

    Training asks for the seen labels only, with the paper's query augmentations; everything else asks for all. Queries do
    not look at each other, so one pass over all labels (GZSL) gives unseen ones the logits of a pass over them alone (ZSL).
    """

    can_be_zero_shot = True

    def __init__(
        self,
        options: MLDecoderOptions,
        *,
        channels: Mapping[str, int],
        num_labels: int,
        knowledge: LabelKnowledge = NOTHING,
    ) -> None:
        o, unseen = options, knowledge.unseen
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        # with groups, unseen labels can also have trained queries or weights of another group (Table 8, rows 1 and 3)
        nothing_own = (o.query == "text" and o.pooling != "own") or self.size > 1
        self._trained: tuple[np.ndarray, np.ndarray] | None = None  # vectors and places, once others are asked for
        self.zero_shot = nothing_own and not (o.self_attention and o.query == "text")
        if unseen is not None and unseen.any() and not self.zero_shot:
            raise ConfigError(
                "labels that training never tells (zero_shot.unseen) need head.query=text and head.pooling=shared or text, "
                "or fewer head.groups than labels, without self-attention among the words, as in --recipe "
                f"ml-decoder-zero-shot; this head has query={o.query}, pooling={o.pooling}, {self.size} labels a query and "
                f"self_attention={str(o.self_attention).lower()}"
            )
        vectors = _needed(knowledge.vectors, num_labels)
        seats = self._seats(vectors, knowledge)
        self._say_queries(seats.groups, restored=knowledge.restored)
        self.groups = seats.trained_groups
        trained = vectors[seats.trained < len(seats.trained_slot)]
        anchors = trained if o.word_space == "mixture" else vectors[:0]
        self.words = Words(vectors, anchors, o.temperature, seats, self._augmentation)
        word_dim = self.words.width
        self.queries = WordQueries(word_dim, o.dim, self.size) if o.query == "text" else self._own_queries()
        if o.pooling == "text":
            self.pool: nn.Module = WordLinear(word_dim, o.dim, self.size)
        else:
            self.pool = GroupLinear(len(trained), self.groups, self.size, o.dim, shared=o.pooling == "shared")

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        asked: Asked = self.words()
        queries: Any = self.queries
        first = queries(asked) if self.options.query == "text" else queries.weight  # G_q [K, D]
        t = around(self.decode(first, features, trace), 1, asked.groups)  # [B, K, D]
        if self.options.pooling == "text":
            logits = self.pool(t, asked)  # [B, n + R]
        else:
            logits = self.pool(t, asked.slot, asked.trained)
        labels, noise = logits[:, : len(asked.slot) - asked.random], logits[:, len(asked.slot) - asked.random :]
        extra = (
            softplus(-noise.float()) if asked.random else None
        )  # −log σ(x), the cost of a label that is there. [B, R]
        return Output(self._of_all(labels), extra=extra)

    @torch.no_grad()
    def expect(self, prior: Prior) -> None:
        """Biases of single labels are those of seen ones."""
        super().expect(replace(prior, labels=prior.labels[self.words.seen.cpu()]))

    def _of_all(self, logits: Tensor) -> Tensor:
        """Of the labels that training asks for, to all: 0 where it did not ask, which no loss looks at. [B, n] → [B, N]"""
        if logits.shape[1] == self.num_labels:
            return logits
        return logits.new_zeros(len(logits), self.num_labels).index_copy(1, self.words.seen, logits)

    @property
    def query_of_label(self) -> Tensor:
        query = self.words.slot // self.size
        return query if self.options.query == "text" else query % self.groups

    # --- labels -----------------------------------------------------------------------------------------------------

    @property
    def _augmentation(self) -> QueryAugmentation:
        o = self.options
        return QueryAugmentation(o.query_noise, o.random_queries, o.query_cutout)

    def _group_size(self, num_labels: int) -> int:
        size, o = super()._group_size(num_labels), self.options
        if o.query != "text":
            return size
        divisors = [g for g in range(size, o.dim + 1) if o.dim % g == 0]  # Eq. 5 gives each label d/g of the query
        if not divisors:
            raise ConfigError(
                f"head.groups={o.groups}: {size} labels a query do not fit into head.dim={o.dim}; use more groups"
            )
        return divisors[0]

    def _seats(self, vectors: np.ndarray, knowledge: LabelKnowledge) -> Seats:
        unseen = np.zeros(len(vectors), bool) if knowledge.unseen is None else knowledge.unseen
        seen = np.flatnonzero(~unseen)
        trained = np.full(len(vectors), len(seen))
        trained[seen] = np.arange(len(seen))
        return self._seated(vectors, trained, self._slots(vectors, knowledge, seen), knowledge)

    def _seated(
        self, vectors: np.ndarray, trained: np.ndarray, trained_slot: np.ndarray, knowledge: LabelKnowledge
    ) -> Seats:
        """Trained labels where they sat in training, all others among themselves behind them."""
        if self.size == 1:
            return Seats(1, np.arange(len(vectors)), trained, trained_slot)
        others = np.flatnonzero(trained == len(trained_slot))
        slot = np.append(trained_slot, 0)[trained]
        slot[others] = behind(trained_slot, self.size) + self._slots(vectors, knowledge, others)
        return Seats(self.size, slot, trained, trained_slot)

    def _slots(self, vectors: np.ndarray, knowledge: LabelKnowledge, among: np.ndarray) -> np.ndarray:
        """Places of these labels among themselves."""
        o, together = self.options, knowledge.together
        together = None if together is None else together[np.ix_(among, among)]
        how = "order" if knowledge.restored and o.grouping in ("cooccurrence", "text") else o.grouping
        return slots(how, len(among), self.size, seed=o.grouping_seed, together=together, vectors=vectors[among])

    @property
    def vectors(self) -> np.ndarray | None:
        return _array(self.words.vectors)

    @property
    def unseen(self) -> np.ndarray | None:
        if len(self.words.seen) == self.num_labels:
            return None
        unseen = np.ones(self.num_labels, bool)
        unseen[self.words.seen.numpy(force=True)] = False
        return unseen

    def relabel(self, vectors: np.ndarray) -> None:
        if not self.zero_shot:
            super().relabel(vectors)
        known = self.words.vectors
        if vectors.ndim != 2 or vectors.shape[1] != known.shape[1]:
            raise ConfigError(
                f"the vectors have {vectors.shape[-1]} numbers each, this model was trained with {known.shape[1]}"
            )
        vectors = _array(one_length(torch.as_tensor(vectors)))
        if self._trained is None:
            self._trained = _array(known[self.words.seen]), self.words.seen_slot.numpy(force=True)
        company, trained_slot = self._trained
        trained = np.arange(len(vectors))
        if self.size == 1:
            trained_slot = trained  # a query for each: they need no company
        else:
            trained = known_among(vectors, company)
            vectors = np.where((trained < len(company))[:, None], np.append(company, vectors[:1], 0)[trained], vectors)
        # training images do not say with what new labels come
        knowledge = LabelKnowledge(vectors, restored=self.options.grouping == "cooccurrence")
        seats = self._seated(vectors, trained, trained_slot, knowledge)
        anchors, training = _array(self.words.anchors), self.training
        words = Words(vectors, anchors, self.options.temperature, seats, self._augmentation, company)
        self.num_labels, self.words = len(vectors), words.to(known).train(training)


def _array(tensor: Tensor) -> np.ndarray:
    """In float32, for NumPy knows no bfloat16."""
    found: np.ndarray = tensor.float().numpy(force=True)
    return found


def _needed(vectors: np.ndarray | None, num_labels: int) -> np.ndarray:
    if vectors is None:
        raise ConfigError(
            "this head works with text vectors of the labels; choose where they come from: --set text.name=glove "
            "(or minilm, file, given; see 'manylabel texts')"
        )
    if vectors.ndim != 2 or len(vectors) != num_labels:
        raise ConfigError(f"there are text vectors of shape {list(vectors.shape)} for {num_labels} labels")
    return vectors

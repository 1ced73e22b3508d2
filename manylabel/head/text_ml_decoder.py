"""ML-Decoder with words: queries and classifiers made from text vectors, so that it answers for labels nobody trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn.functional import softplus

from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head.base import NOTHING, LabelKnowledge
from manylabel.head.group_decoder import GroupDecoder, MLDecoderOptions
from manylabel.head.group_linear import GroupLinear
from manylabel.head.grouping import slots
from manylabel.head.words import Asked, WordLinear, WordQueries, Words


class TextMLDecoder(GroupDecoder):
    """G_q from words (Eq. 5), weights of the group FC from words (Eq. 6), or both; zero-shot where nothing is a label's own.

    Training asks for the seen labels only, with the paper's query augmentations; everything else asks for all.
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
        o = options
        zero_shot = o.query == "text" and o.pooling != "own"
        if knowledge.unseen is not None and knowledge.unseen.any() and not zero_shot:
            raise ConfigError(
                "labels that training never tells (zero_shot.unseen) need head.query=text and head.pooling=shared or text, "
                f"as in --recipe ml-decoder-zero-shot; this head has query={o.query} and pooling={o.pooling}"
            )
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        self.zero_shot = zero_shot
        self.words = self._words(_needed(knowledge.vectors, num_labels), knowledge)
        word_dim = self.words.size
        self.queries = WordQueries(word_dim, o.dim, self.size) if o.query == "text" else self._own_queries()
        if o.pooling == "text":
            self.pool: nn.Module = WordLinear(word_dim, o.dim, self.size)
        else:
            self.pool = GroupLinear(num_labels, self.groups, self.size, o.dim, shared=o.pooling == "shared")

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        asked: Asked = self.words()
        queries: Any = self.queries
        first = queries(asked) if self.options.query == "text" else queries.weight  # G_q [K, D]
        t = self.decode(first, features, trace)  # [B, K, D]
        logits = self.pool(t, asked if self.options.pooling == "text" else asked.slot)  # [B, n + R]
        labels, noise = logits[:, : len(asked.slot) - asked.random], logits[:, len(asked.slot) - asked.random :]
        extra = (
            softplus(-noise.float()) if asked.random else None
        )  # −log σ(x): what a label costs that is there. [B, R]
        return Output(self._of_all(labels), extra=extra)

    def _of_all(self, logits: Tensor) -> Tensor:
        """Of the labels that training asks for, to all: 0 where it did not ask, which no loss looks at. [B, n] → [B, N]"""
        if logits.shape[1] == self.num_labels:
            return logits
        return logits.new_zeros(len(logits), self.num_labels).index_copy(1, self.words.seen, logits)

    @property
    def query_of_label(self) -> Tensor:
        return self.words.slot // self.size

    # --- labels -----------------------------------------------------------------------------------------------------

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

    def _words(self, vectors: np.ndarray, knowledge: LabelKnowledge, anchors: np.ndarray | None = None) -> Words:
        o, unseen = self.options, knowledge.unseen
        seen = np.arange(self.num_labels)
        if unseen is not None and unseen.any():
            seen = np.flatnonzero(~unseen)
        if anchors is None:
            anchors = vectors[seen] if o.word_space == "mixture" else vectors[:0]
        every = np.arange(self.num_labels)
        slot, seen_slot = (self._slots(vectors, knowledge, among) for among in (every, seen))
        return Words(vectors, anchors, o.temperature, slot, seen, seen_slot, o.query_noise, o.random_queries)

    def _slots(self, vectors: np.ndarray, knowledge: LabelKnowledge, among: np.ndarray) -> np.ndarray:
        """Places of these labels among themselves."""
        o, together = self.options, knowledge.together
        together = None if together is None else together[np.ix_(among, among)]
        how = "order" if knowledge.restored and o.grouping in ("cooccurrence", "text") else o.grouping
        return slots(how, len(among), self.size, seed=o.grouping_seed, together=together, vectors=vectors[among])

    @property
    def vectors(self) -> np.ndarray | None:
        return self.words.vectors.numpy(force=True)

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
        self.num_labels = len(vectors)
        knowledge = LabelKnowledge(vectors, restored=self.options.grouping == "cooccurrence")
        anchors = self.words.anchors.numpy(force=True)
        self.words = self._words(vectors, knowledge, anchors).to(known.device).train(self.training)


def _needed(vectors: np.ndarray | None, num_labels: int) -> np.ndarray:
    if vectors is None:
        raise ConfigError(
            "this head works with text vectors of the labels; choose where they come from: --set text.name=glove "
            "(or minilm, file, given; see 'manylabel texts')"
        )
    if vectors.ndim != 2 or len(vectors) != num_labels:
        raise ConfigError(f"there are text vectors of shape {list(vectors.shape)} for {num_labels} labels")
    return vectors

"""ML-Decoder: label queries look at the image through one cross-attention; groups of labels share a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from manylabel.config import option
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head.attention import Attention, FeedForward
from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge, Look
from manylabel.head.group_linear import GroupLinear
from manylabel.head.grouping import GroupOptions, group_size, slots
from manylabel.head.tokens import TokenOptions, Tokens
from manylabel.head.words import Asked, WordLinear, WordQueries, Words
from manylabel.require import require


class DecoderLayer(nn.Module):
    """The transformer decoder's layer without self-attention (Eq. 4), norms after the sums:

    t ← LN(t + drop(t))                  stands where self-attention was; the same for every image
    t ← LN(t + drop(MultiHeadAttn(t, E, E)))
    t ← LN(t + drop(FF(t)))
    """

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.feed_forward = FeedForward(dim, hidden, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, t: Tensor, e: Tensor) -> Tensor:
        """t [K, D] (the same queries for all images) or [B, K, D], e [B, T, D] → [B, K, D]"""
        t = self.norm1(t + self.drop(t))
        t = self.norm2(t + self.drop(self.attention(t, e, e)))
        return self.norm3(t + self.drop(self.feed_forward(t)))

    def weights(self, t: Tensor, e: Tensor) -> Tensor:
        """Where the queries look in forward(). [B, h, K, T]"""
        return self.attention.weights(self.norm1(t + self.drop(t)), e)


class RandomQueries(nn.Module):
    """Queries that nobody trains: the projection behind them can turn them into any others (section 2.3.2)."""

    weight: Tensor

    def __init__(self, groups: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(groups, dim))


@HEADS.register("ml_decoder")
class MLDecoder(Head):
    """ML-Decoder: G_q → cross-attention over E → feed-forward → group FC (Eq. 3–4); zero-shot with text queries (Eq. 5–6).

    N labels, K group queries of g = ⌈N/K⌉ labels, D = dim. Queries that no label would use are left out.
    """

    recipe = "ml-decoder-laptop"
    can_be_zero_shot = True

    @dataclass(frozen=True)
    class Options(GroupOptions, TokenOptions):
        dim: int = option(256, "width D of queries and tokens (paper: 768)")
        heads: int = option(8, "attention heads")
        hidden: int = option(1024, "width inside the feed-forward block (paper: 2048)")
        layers: int = option(1, "decoder layers")
        dropout: float = option(0.1, "dropout of the decoder")
        query: Literal["fixed", "learnable", "text"] = option(
            "fixed", "random but fixed queries, trained ones, or words"
        )
        pooling: Literal["own", "shared", "text"] = option(
            "own", "last layer: weights per group (Eq. 3), one for all labels, or made from words (Eq. 6)"
        )
        word_space: Literal["plain", "mixture"] = option(
            "plain", "text vectors as they are, or each label as a mixture of the seen labels nearest in meaning"
        )
        temperature: float = option(
            0.03, "with word_space=mixture: how far the mixture reaches; small = the nearest label only"
        )
        query_noise: float = option(
            0.0, "query-noise augmentation: σ of the noise on text vectors, whose entries have mean square 1"
        )
        random_queries: int = option(0, "random-query augmentation: so many random vectors per batch, target 1")

        def __post_init__(self) -> None:
            super().__post_init__()
            for name in ("dim", "heads", "hidden", "layers"):
                require(getattr(self, name) >= 1, f"head.{name}", getattr(self, name), "1 or more")
            require(self.dim % self.heads == 0, "head.dim", self.dim, f"a multiple of head.heads ({self.heads})")
            require(0 <= self.dropout < 1, "head.dropout", self.dropout, "at least 0 and below 1")
            require(self.temperature > 0, "head.temperature", self.temperature, "above 0")
            require(self.query_noise >= 0, "head.query_noise", self.query_noise, "0 or more")
            require(self.random_queries >= 0, "head.random_queries", self.random_queries, "0 or more")
            if (self.query_noise or self.random_queries) and not (self.query == "text" and self.pooling != "own"):
                raise ConfigError(
                    "head.query_noise and head.random_queries vary text queries: they need head.query=text and "
                    "head.pooling=shared or text"
                )

    options: Options
    slot: Tensor  # [N]: place of each label among the groups

    def __init__(
        self, options: Options, *, channels: Mapping[str, int], num_labels: int, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        o = options
        self.zero_shot = o.query == "text" and o.pooling != "own"
        if knowledge.unseen is not None and knowledge.unseen.any() and not self.zero_shot:
            raise ConfigError(
                "labels that training never tells (zero_shot.unseen) need head.query=text and head.pooling=shared or text, "
                f"as in --recipe ml-decoder-zero-shot; this head has query={o.query} and pooling={o.pooling}"
            )
        self.size = _group_size(o, num_labels)
        groups = group_size(num_labels, self.size)
        self.tokens = Tokens(o, channels, o.dim, nn.ReLU(inplace=True))
        self.stages = self.tokens.stages
        self.layers = nn.ModuleList(DecoderLayer(o.dim, o.heads, o.hidden, o.dropout) for _ in range(o.layers))
        vectors = knowledge.vectors
        if "text" in (o.query, o.pooling):
            self.words = self._words(_needed(vectors, num_labels), knowledge)
            word_dim = self.words.size
        else:
            self.register_buffer("slot", torch.as_tensor(self._slots(knowledge.vectors, knowledge)))
        if o.query == "text":
            self.queries: nn.Module = WordQueries(word_dim, o.dim, self.size)
        else:
            self.queries = RandomQueries(groups, o.dim)
            if o.query == "learnable":
                self.queries = nn.Embedding(groups, o.dim)
        if o.pooling == "text":
            self.pool: nn.Module = WordLinear(word_dim, o.dim, self.size)
        else:
            self.pool = GroupLinear(num_labels, groups, self.size, o.dim, shared=o.pooling == "shared")

    def forward(self, features: Features) -> Tensor:
        e = self.tokens(features)  # E [B, T, D]
        asked = self.words() if hasattr(self, "words") else None
        t = self._first(asked)  # G_q [K, D]
        for layer in self.layers:
            t = layer(t, e)  # [B, K, D]
        if asked is None:
            return self.pool(t, self.slot)  # [B, N]
        logits = self.pool(t, asked if self.options.pooling == "text" else asked.slot)  # [B, n]
        return self._of_all(logits, asked)

    @property
    def query_of_label(self) -> Tensor:
        slot = self.words.slot if hasattr(self, "words") else self.slot
        return slot // self.size

    def look(self, features: Features) -> Look:
        e = self.tokens(features)
        t = self._first(self.words() if hasattr(self, "words") else None)
        layers: list[Any] = list(self.layers)
        for layer in layers[:-1]:
            t = layer(t, e)
        return Look(layers[-1].weights(t, e), self.tokens.layout(features))

    def _first(self, asked: Asked | None) -> Tensor:
        """The queries G_q before the first layer. [K, D]"""
        queries: Any = self.queries
        first: Tensor = queries(asked) if self.options.query == "text" else queries.weight
        return first

    def _of_all(self, logits: Tensor, asked: Asked) -> Tensor:
        """Of the labels that training asks for, to all: 0 where it did not ask, which no loss looks at. [B, n] → [B, N]"""
        self.extra_costs = None
        if asked.random:
            logits, noise = logits[:, : -asked.random], logits[:, -asked.random :]
            self.extra_costs = softplus(-noise.float())  # −log σ(x): what a label costs that is there. [B, R]
        if logits.shape[1] == self.num_labels:
            return logits
        return logits.new_zeros(len(logits), self.num_labels).index_copy(1, self.words.seen, logits)

    # --- labels -----------------------------------------------------------------------------------------------------

    def _slots(
        self, vectors: np.ndarray | None, knowledge: LabelKnowledge, chosen: np.ndarray | None = None
    ) -> np.ndarray:
        """Places of all labels, or of the chosen ones among themselves."""
        o, together, count = self.options, knowledge.together, self.num_labels
        if chosen is not None:
            vectors = None if vectors is None else vectors[chosen]
            together = None if together is None else together[np.ix_(chosen, chosen)]
            count = len(chosen)
        how = "order" if knowledge.restored and o.grouping in ("cooccurrence", "text") else o.grouping
        return slots(how, count, self.size, seed=o.grouping_seed, together=together, vectors=vectors)

    def _words(self, vectors: np.ndarray, knowledge: LabelKnowledge, anchors: np.ndarray | None = None) -> Words:
        o, unseen = self.options, knowledge.unseen
        seen = np.arange(self.num_labels)
        if unseen is not None and unseen.any():
            seen = np.flatnonzero(~unseen)
        if anchors is None:
            anchors = vectors[seen] if o.word_space == "mixture" else vectors[:0]
        slot, seen_slot = self._slots(vectors, knowledge), self._slots(vectors, knowledge, seen)
        return Words(vectors, anchors, o.temperature, slot, seen, seen_slot, o.query_noise, o.random_queries)

    @property
    def vectors(self) -> np.ndarray | None:
        return self.words.vectors.numpy(force=True) if hasattr(self, "words") else None

    @property
    def unseen(self) -> np.ndarray | None:
        if not hasattr(self, "words") or len(self.words.seen) == self.num_labels:
            return None
        unseen = np.ones(self.num_labels, bool)
        unseen[self.words.seen.numpy(force=True)] = False
        return unseen

    @classmethod
    def knowledge_of(cls, state: Mapping[str, Tensor], num_labels: int) -> LabelKnowledge:
        if "words.vectors" not in state:
            return LabelKnowledge(restored=True)
        unseen = np.ones(num_labels, bool)
        unseen[state["words.seen"].numpy()] = False
        return LabelKnowledge(state["words.vectors"].numpy(), None, unseen if unseen.any() else None, restored=True)

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


def _group_size(o: MLDecoder.Options, num_labels: int) -> int:
    """g: how many labels share a query."""
    size = o.labels_per_query(num_labels, full=o.pooling == "shared")
    if o.query != "text":
        return size
    divisors = [g for g in range(size, o.dim + 1) if o.dim % g == 0]  # Eq. 5 gives each label d/g of the query
    if not divisors:
        raise ConfigError(
            f"head.groups={o.groups}: {size} labels a query do not fit into head.dim={o.dim}; use more groups"
        )
    return divisors[0]


def _needed(vectors: np.ndarray | None, num_labels: int) -> np.ndarray:
    if vectors is None:
        raise ConfigError(
            "this head works with text vectors of the labels; choose where they come from: --set text.name=glove "
            "(or minilm, file, given; see 'manylabel texts')"
        )
    if vectors.ndim != 2 or len(vectors) != num_labels:
        raise ConfigError(f"there are text vectors of shape {list(vectors.shape)} for {num_labels} labels")
    return vectors

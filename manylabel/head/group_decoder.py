"""What both forms of ML-Decoder share: queries that look at the image through cross-attention, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from manylabel import console
from manylabel.config import option
from manylabel.core.trace import QueryAttention, Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head.attention import Attention, FeedForward
from manylabel.head.base import NOTHING, Head, LabelKnowledge
from manylabel.head.grouping import GroupOptions, group_size
from manylabel.head.prior import Prior
from manylabel.head.tokens import TokenOptions, Tokens
from manylabel.require import require


@dataclass(frozen=True)
class MLDecoderOptions(GroupOptions, TokenOptions):
    dim: int = option(256, "width D of queries and tokens (paper: 768)")
    heads: int = option(8, "attention heads")
    hidden: int = option(1024, "width inside the feed-forward block (paper: 2048)")
    layers: int = option(1, "decoder layers")
    dropout: float = option(0.1, "dropout of the decoder")
    query: Literal["fixed", "learnable", "text"] = option("fixed", "random but fixed queries, trained ones, or words")
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
    query_cutout: float = option(
        0.0, "query-cutout augmentation: share of the text vectors' entries that a batch deletes"
    )
    self_attention: bool = option(
        False, "queries look at each other first, as in a transformer decoder: cost grows with their square"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("dim", "heads", "hidden", "layers"):
            require(getattr(self, name) >= 1, f"head.{name}", getattr(self, name), "1 or more")
        require(self.dim % self.heads == 0, "head.dim", self.dim, f"a multiple of head.heads ({self.heads})")
        require(0 <= self.dropout < 1, "head.dropout", self.dropout, "at least 0 and below 1")
        require(self.temperature > 0, "head.temperature", self.temperature, "above 0")
        require(self.query_noise >= 0, "head.query_noise", self.query_noise, "0 or more")
        require(self.random_queries >= 0, "head.random_queries", self.random_queries, "0 or more")
        require(0 <= self.query_cutout < 1, "head.query_cutout", self.query_cutout, "at least 0 and below 1")
        varied = self.query_noise or self.random_queries or self.query_cutout
        if varied and not (self.query == "text" and self.pooling != "own"):
            raise ConfigError(
                "head.query_noise, head.random_queries and head.query_cutout vary text queries: they need head.query=text "
                "and head.pooling=shared or text"
            )

    @property
    def words(self) -> bool:
        """Whether queries or classifiers are made from the labels' words."""
        return "text" in (self.query, self.pooling)


class DecoderLayer(nn.Module):
    """The transformer decoder's layer without self-attention (Eq. 4), or with it (Eq. 2); norms after the sums:

    t ← LN(t + drop(t))                         or LN(t + drop(MultiHeadAttn(t, t, t))); at first the same for every image
    t ← LN(t + drop(MultiHeadAttn(t, E, E)))
    t ← LN(t + drop(FF(t)))
    """

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float, self_attention: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.self_attention = Attention(dim, heads, dropout) if self_attention else None
        self.attention = Attention(dim, heads, dropout)
        self.feed_forward = FeedForward(dim, hidden, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, t: Tensor, e: Tensor) -> Tensor:
        """t [K, D] (the same queries for all images) or [B, K, D], e [B, T, D] → [B, K, D]"""
        t = self._first(t)
        t = self.norm2(t + self.drop(self.attention(t, e, e)))
        decoded: Tensor = self.norm3(t + self.drop(self.feed_forward(t)))
        return decoded

    def weights(self, t: Tensor, e: Tensor) -> Tensor:
        """Where the queries look in forward(). [B, h, K, T]"""
        return self.attention.weights(self._first(t), e)

    def _first(self, t: Tensor) -> Tensor:
        looked = t if self.self_attention is None else self.self_attention(t, t, t)
        first: Tensor = self.norm1(t + self.drop(looked))
        return first


class RandomQueries(nn.Module):
    """Queries that nobody trains: the projection behind them can turn them into any others (section 2.3.2)."""

    weight: Tensor

    def __init__(self, groups: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(groups, dim))


class GroupDecoder(Head):
    """E = tokens of the image; G_q → layers that look at E. N labels, K group queries of g = ⌈N/K⌉ labels, D = dim."""

    Options = MLDecoderOptions
    options: MLDecoderOptions

    def __init__(
        self,
        options: MLDecoderOptions,
        *,
        channels: Mapping[str, int],
        num_labels: int,
        knowledge: LabelKnowledge = NOTHING,
    ) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        o = options
        self.size = self._group_size(num_labels)  # g
        self.groups = group_size(num_labels, self.size)  # queries that no label would use are left out
        self.tokens = Tokens(o, channels, o.dim, nn.ReLU(inplace=True))
        self.stages = self.tokens.stages
        layer = (o.dim, o.heads, o.hidden, o.dropout, o.self_attention)
        self.layers = nn.ModuleList(DecoderLayer(*layer) for _ in range(o.layers))

    def _group_size(self, num_labels: int) -> int:
        """g: how many labels share a query."""
        return self.options.labels_per_query(num_labels, full=self.options.pooling == "shared")

    def _say_queries(self, queries: int, *, restored: bool) -> None:
        """K is what was asked for only where every group of g = ⌈N/K⌉ labels is needed (and, with words, g divides D)."""
        if not restored and self.options.groups not in (None, queries):
            words = f", for {self.size} must divide head.dim={self.options.dim}" if self.options.query == "text" else ""
            console.say(
                f"head.groups={self.options.groups} for {self.num_labels:,} labels: {queries} queries of {self.size} labels"
                f" each{words}"
            )

    def _own_queries(self) -> nn.Module:
        """G_q that know nothing of words, fixed or trained; `weight` [K, D]."""
        if self.options.query == "learnable":
            return nn.Embedding(self.groups, self.options.dim)
        return RandomQueries(self.groups, self.options.dim)

    @torch.no_grad()
    def expect(self, prior: Prior) -> None:
        pool: Any = self.pool
        pool.expect(prior)

    def decode(self, t: Tensor, features: Features, trace: Trace | None) -> Tensor:
        """G_q [K, D] after all layers. [B, K, D]"""
        e = self.tokens(features)  # E [B, T, D]
        layers: list[Any] = list(self.layers)
        for layer in layers:
            if layer is layers[-1] and trace is not None and trace.attention is not None:
                trace.attention.append(QueryAttention(layer.weights(t, e), self.tokens.layout(features)))
            t = layer(t, e)
        return t

"""Query2Label: the transformer-decoder head that ML-Decoder is measured against, and the base of HSQ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from manylabel.config import option
from manylabel.core.output import Output
from manylabel.core.trace import QueryAttention, Trace
from manylabel.features import Features
from manylabel.head.attention import Attention, FeedForward
from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.head.position import sine_positions
from manylabel.head.prior import Prior
from manylabel.head.tokens import TokenOptions, Tokens
from manylabel.require import require


class EncoderLayer(nn.Module):
    """Tokens look at each other: x ← LN(x + drop(MultiHeadAttn(x+p, x+p, x))), x ← LN(x + drop(FF(x)))."""

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.feed_forward = FeedForward(dim, hidden, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        """x [B, T, D], position [T, D]"""
        x = self.norm1(x + self.drop(self.attention(x + position, x + position, x)))
        encoded: Tensor = self.norm2(x + self.drop(self.feed_forward(x)))
        return encoded


class DecoderLayer(nn.Module):
    """Labels look at each other (if asked for) and at the tokens (ML-Decoder, Eq. 2), norms after the sums:

    t ← LN(t + drop(MultiHeadAttn(t+q, t+q, t)))          self-attention, optional
    t ← LN(t + drop(MultiHeadAttn(t+q, E+p, E)))
    t ← LN(t + drop(FF(t)))
    """

    def __init__(self, dim: int, heads: int, hidden: int, dropout: float, self_attention: bool) -> None:
        super().__init__()
        self.self_attention = Attention(dim, heads, dropout) if self_attention else None
        self.norm1 = nn.LayerNorm(dim) if self_attention else None
        self.attention = Attention(dim, heads, dropout)
        self.feed_forward = FeedForward(dim, hidden, dropout)
        self.norm2, self.norm3 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, t: Tensor, q: Tensor, e: Tensor, position: Tensor) -> Tensor:
        """t [N, D] (the same for all images) or [B, N, D], q [N, D], e [B, T, D], position [T, D] → [B, N, D]"""
        t = self._among(t, q)
        t = self.norm2(t + self.drop(self.attention(t + q, e + position, e)))
        decoded: Tensor = self.norm3(t + self.drop(self.feed_forward(t)))
        return decoded

    def weights(self, t: Tensor, q: Tensor, e: Tensor, position: Tensor) -> Tensor:
        """Where the labels look in forward(). [B, h, N, T]"""
        return self.attention.weights(self._among(t, q) + q, e + position)

    def _among(self, t: Tensor, q: Tensor) -> Tensor:
        if self.self_attention is None or self.norm1 is None:
            return t
        every = t if t.ndim == 3 else t[None]
        looked = self.self_attention(every + q, every + q, every)
        among: Tensor = self.norm1(t + self.drop(looked if t.ndim == 3 else looked[0]))
        return among


def begin_as_released(layers: nn.Module) -> None:
    """Matrices begin as in Query2Label's code: xavier-uniform, those of queries, keys and values as one of [3 D, D]."""
    for module in layers.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    for module in layers.modules():
        if isinstance(module, Attention):
            for part in (module.query, module.key, module.value):
                nn.init.xavier_uniform_(part.weight, gain=0.5**0.5)  # ±√(6 / (D + 3 D))


class LabelLinear(nn.Module):
    """l_n = w_n · h_n + b_n: a classifier for each label."""

    def __init__(self, num_labels: int, dim: int) -> None:
        super().__init__()
        bound = dim**-0.5
        self.weight = nn.Parameter(torch.empty(num_labels, dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(num_labels).uniform_(-bound, bound))

    def forward(self, h: Tensor) -> Tensor:
        """[B, N, D] → [B, N]"""
        return (h * self.weight).sum(dim=-1) + self.bias


@dataclass(frozen=True)
class QueryOptions(TokenOptions):
    """Settings of the query transformer."""

    dim: int = option(256, "width D of queries and tokens (Query2Label: 2048)")
    heads: int = option(4, "attention heads")
    hidden: int = option(1024, "width inside the feed-forward blocks (Query2Label: 8192)")
    encoder_layers: int = option(1, "layers in which tokens look at each other; 0 = none")
    decoder_layers: int = option(2, "layers in which labels look at tokens")
    self_attention: bool = option(False, "labels look at each other, too: cost grows with their square")
    decoder_start: Literal["zeros", "queries"] = option(
        "zeros", "what the decoder's vectors begin as: nothing (Query2Label), or the label queries themselves"
    )
    positions: bool = option(True, "tokens know where they lie (sines)")
    decoder_norm: bool = option(True, "a norm behind the last decoder layer, as Query2Label has it")
    dropout: float = option(0.1, "dropout of all layers")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("dim", "heads", "hidden", "decoder_layers"):
            require(getattr(self, name) >= 1, f"head.{name}", getattr(self, name), "1 or more")
        require(self.encoder_layers >= 0, "head.encoder_layers", self.encoder_layers, "0 or more")
        require(self.dim % self.heads == 0, "head.dim", self.dim, f"a multiple of head.heads ({self.heads})")
        require(0 <= self.dropout < 1, "head.dropout", self.dropout, "at least 0 and below 1")
        if self.positions:
            require(self.token_dropout == 0, "head.token_dropout", self.token_dropout, "0 with head.positions")


class QueryTransformer(nn.Module):
    """Features → one vector per label [B, N, D], by label queries q_n that are learned."""

    def __init__(self, o: QueryOptions, channels: Mapping[str, int], num_labels: int) -> None:
        super().__init__()
        self.positions, self.start = o.positions, o.decoder_start
        self.tokens = Tokens(o, channels, o.dim)
        self.stages = self.tokens.stages
        self.queries = nn.Embedding(num_labels, o.dim)
        layer = (o.dim, o.heads, o.hidden, o.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(*layer) for _ in range(o.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*layer, o.self_attention) for _ in range(o.decoder_layers))
        self.norm = nn.LayerNorm(o.dim) if o.decoder_norm else nn.Identity()
        for part in (self.encoder, self.decoder):
            begin_as_released(part)

    def forward(self, features: Features, trace: Trace | None = None) -> Tensor:
        t, q, e, p = self._encoded(features)
        layers: list[Any] = list(self.decoder)
        for layer in layers:
            if layer is layers[-1] and trace is not None and trace.attention is not None:
                trace.attention.append(QueryAttention(layer.weights(t, q, e, p), self.tokens.layout(features)))
            t = layer(t, q, e, p)
        normed: Tensor = self.norm(t)
        return normed

    def _encoded(self, features: Features) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the decoder begins with: t and q [N, D], e [B, T, D], positions [T, D]."""
        e, q = self.tokens(features), self.queries.weight  # [B, T, D], [N, D]
        p = sine_positions(self.tokens.grids(features), q.shape[1], e) if self.positions else torch.zeros_like(e[0])
        for layer in self.encoder:
            e = layer(e, p)
        return (q if self.start == "queries" else torch.zeros_like(q)), q, e, p


@HEADS.register("query2label")
class Query2Label(Head):
    """Query2Label: a learned query per label through a transformer decoder, and a linear classifier for each label."""

    recipe = "query2label-laptop"

    @dataclass(frozen=True)
    class Options(QueryOptions):
        pass

    def __init__(
        self, options: Options, *, channels: Mapping[str, int], num_labels: int, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        self.transformer = QueryTransformer(options, channels, num_labels)
        self.stages = self.transformer.stages
        self.classifier = LabelLinear(num_labels, options.dim)

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        return Output(self.classifier(self.transformer(features, trace)))  # [B, N, D] → [B, N]

    @torch.no_grad()
    def expect(self, prior: Prior) -> None:
        self.classifier.bias.copy_(prior.labels)

    @property
    def query_of_label(self) -> Tensor:
        return torch.arange(self.num_labels)

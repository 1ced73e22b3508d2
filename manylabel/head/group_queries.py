"""ML-Decoder's decoder alone: group queries that look at the image, for other layers than its group FC to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from torch import Tensor, nn

from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head.group_decoder import GroupDecoder, MLDecoderOptions, RandomQueries
from manylabel.head.query2label import QueryOptions
from manylabel.head.tokens import TokenOptions

# What of Query2Label's transformer ML-Decoder's decoder does without
WITHOUT = {
    "encoder_layers": 0,
    "self_attention": False,
    "decoder_start": "queries",
    "positions": False,
    "decoder_norm": False,
}


def check_queries_only(o: QueryOptions) -> None:
    """No option is ignored."""
    other = [f"head.{name}={value}".lower() for name, value in WITHOUT.items() if getattr(o, name) != value]
    if other:
        raise ConfigError(
            "head.decoder=ml_decoder has layers of cross-attention and nothing else of Query2Label's transformer: "
            f"set {' '.join(other)} (as --recipe hsq-ml-decoder does)"
        )


class GroupQueries(nn.Module):
    """Features → a vector for each of K group queries [B, K, D]: fixed queries through ML-Decoder's layers (Eq. 4)."""

    def __init__(self, o: QueryOptions, channels: Mapping[str, int], groups: int) -> None:
        super().__init__()
        tokens = {field.name: getattr(o, field.name) for field in fields(TokenOptions)}
        same = {name: getattr(o, name) for name in ("dim", "heads", "hidden", "dropout")}
        options = MLDecoderOptions(groups=groups, layers=o.decoder_layers, **same, **tokens)
        self.decoder = GroupDecoder(options, channels=channels, num_labels=groups)
        self.queries = RandomQueries(groups, o.dim)
        self.stages = self.decoder.stages

    def forward(self, features: Features, trace: Trace | None = None) -> Tensor:
        return self.decoder.decode(self.queries.weight, features, trace)

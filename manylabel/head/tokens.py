"""Where the queries look: the spatial embeddings E of one stage or of several, as tokens of one width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate, layer_norm

from manylabel.config import option
from manylabel.features import FINAL, Features, find_stage
from manylabel.head.base import HeadOptions
from manylabel.require import require


@dataclass(frozen=True)
class TokenOptions(HeadOptions):
    """Settings of every head that looks at places."""

    stages: tuple[str, ...] = option((FINAL,), "stages whose tokens are looked at; an earlier one shows small objects")
    earlier: Literal["onto", "beside"] = option(
        "onto", "what an earlier stage is: something added to the final stage's tokens, place by place, or tokens alone"
    )
    finest: int = option(2, "earlier stages are averaged down to at most so many times the sides of the final one")
    token_dropout: float = option(0.0, "share of an image's tokens that a training step does not see")
    feature_dropout: float = option(0.0, "dropout on the backbone's channels")

    def __post_init__(self) -> None:
        require(len(self.stages) > 0, "head.stages", self.stages, "one stage or more, e.g. final")
        require(len(set(self.stages)) == len(self.stages), "head.stages", self.stages, "different stages")
        require(self.finest >= 1, "head.finest", self.finest, "1 or more")
        for name in ("token_dropout", "feature_dropout"):
            value = getattr(self, name)
            require(0 <= value < 1, f"head.{name}", value, "at least 0 and below 1")


class Tokens(nn.Module):
    """Features → E [B, T, D]: each stage projected to D; with several stages, each with a learned sign of its scale.

    An earlier stage l beside the final one (`earlier=onto`) gives, at each of its finer places p, what the final stage
    says there and what it has to add itself: e_p = σ(W z_↑p + b + W_l norm(h_p)), and W_l begins at 0. So queries first
    see what they would see without it. (`beside`: e_p = σ(W_l h_p + b_l), four weak tokens for each strong one.)
    """

    def __init__(
        self, options: TokenOptions, channels: Mapping[str, int], dim: int, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.stages = tuple(find_stage(stage, channels, "head.stages") for stage in options.stages)
        require(len(set(self.stages)) == len(self.stages), "head.stages", options.stages, "different stages")
        self.finest = options.finest
        self.keep = 1 - options.token_dropout
        self.dropout = nn.Dropout(options.feature_dropout)
        self.onto = options.earlier == "onto" and FINAL in self.stages
        self.project = nn.ModuleDict()
        for stage in self.stages:
            adds = self.onto and stage != FINAL
            layer = nn.Linear(channels[stage], dim, bias=not adds)
            if adds:
                nn.init.zeros_(layer.weight)
            self.project[stage] = layer
        self.activation = activation or nn.Identity()
        several = len(options.stages) > 1
        self.scale = nn.ParameterDict({s: nn.Parameter(0.02 * torch.randn(dim)) for s in self.stages if several})

    def forward(self, features: Features) -> Tensor:
        parts = []
        final = self._projected(features, FINAL) if self.onto else None  # [B, D, h, w]
        for stage in self.stages:
            if final is None:
                e = self._projected(features, stage)
            elif stage == FINAL:
                e = final
            else:
                added = self._projected(features, stage)
                e = interpolate(final, added.shape[-2:], mode="nearest") + added
            e = self.activation(e.flatten(2).transpose(1, 2))  # [B, T, D]
            if self.training and self.keep < 1:
                e = _some(e, self.keep)
            parts.append(e + self.scale[stage] if stage in self.scale else e)
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _projected(self, features: Features, stage: str) -> Tensor:
        """W x + b at every place. [B, D, H, W]"""
        x = self.map(features, stage).movedim(1, 3)  # [B, H, W, C]
        if self.onto and stage != FINAL:
            x = layer_norm(x, x.shape[-1:])
        projected: Tensor = self.project[stage](self.dropout(x)).movedim(3, 1)
        return projected

    def map(self, features: Features, stage: str) -> Tensor:
        """A stage's map, made coarser where it is too fine. [B, C, H, W]"""
        stage_map = features.stages[stage]
        if stage == FINAL or FINAL not in features.stages:
            return stage_map
        height, width = (self.finest * side for side in features.grid())
        if stage_map.shape[-2] <= height and stage_map.shape[-1] <= width:
            return stage_map
        return adaptive_avg_pool2d(stage_map, (min(height, stage_map.shape[-2]), min(width, stage_map.shape[-1])))

    def grids(self, features: Features) -> list[tuple[int, int]]:
        """(rows, columns) of each stage's tokens, in the order of the tokens."""
        return list(self.layout(features).values())

    def layout(self, features: Features) -> dict[str, tuple[int, int]]:
        """The same by the names of the stages."""
        sizes = {stage: self.map(features, stage).shape[-2:] for stage in self.stages}
        return {stage: (height, width) for stage, (height, width) in sizes.items()}


def _some(tokens: Tensor, share: float) -> Tensor:
    """A random part of each image's tokens. [B, T, C] → [B, ⌈share·T⌉, C]"""
    batch, count, _ = tokens.shape
    kept = -(-count * share // 1)
    chosen = torch.rand(batch, count, device=tokens.device).argsort(dim=1)[:, : int(kept)]  # [B, t]
    return tokens[torch.arange(batch, device=tokens.device)[:, None], chosen]

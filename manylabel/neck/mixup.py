"""Representation mixup (RM): an earlier stage's summary is mixed into the frozen backbone's output.

z' = α ĥ + (1 − α) z   with ĥ = RS(h) and α = σ(W z + b)                                            (Eq. 5, 6)

As published (`summary=mean normalise=false start=0`, recipe rm-paper) α and ĥ begin at random, ĥ is squashed to 0..1
whatever the size of z is, and one stage is looked at. Ours, the default, begins near the pre-trained feature (`start`),
brings ĥ to the scale of z (`normalise`) and weighs places (`summary=attention`); it may look at several stages with a
learned weight for each, and let every label choose (`share=label`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.distributions import Beta

from manylabel.config import option
from manylabel.core.trace import Trace
from manylabel.features import FINAL, Features, find_stage
from manylabel.neck.base import NECKS, Neck, Weighted
from manylabel.neck.summary import Attention, Mean, Pool1d, Summary
from manylabel.require import require

SUMMARIES: dict[str, type[Summary]] = {"mean": Mean, "attention": Attention, "pool1d": Pool1d}


@NECKS.register("rm")
class RepresentationMixup(Neck):
    """z' = α Σ_l w_l RS_l(h_l) + (1 − α) z"""

    @dataclass(frozen=True)
    class Options:
        stages: tuple[str, ...] = option(
            ("stage-2",),
            "the earlier stages that are mixed in: rm1, rm2, rm3 (the paper's blocks, which end at strides 4, 8, 16), a "
            "stride, or a name",
        )
        summary: Literal["mean", "attention", "pool1d"] = option(
            "attention",
            "RS: mean over places and a layer (Eq. 2), attention over places, or the paper's 1-d pooling (Eq. 3)",
        )
        queries: int = option(4, "with summary=attention: how many places each stage is asked for")
        hidden: int = option(0, "width of the hidden layer of RS; 0 = one linear layer")
        activation: Literal["auto", "sigmoid", "none"] = option(
            "auto", "what follows RS; auto = as published: sigmoid behind summary=mean, else none"
        )
        normalise: bool = option(True, "bring the summaries to the scale of the backbone's output")
        start: float = option(0.1, "α of every image to begin with; 0 = wherever random weights put it, as published")
        alpha: Literal["learned", "fixed", "beta"] = option(
            "learned",
            "α of an image: made from its feature (Eq. 6), always neck.start, or drawn in training from Beta(b, b) as mixup "
            "does, and 0.5 afterwards",
        )
        beta: float = option(1.0, "with alpha=beta: b; 1 = any α as likely as any other")
        floor: float = option(0.0, "α is never below this, so that earlier stages always have a say; 0 = as published")
        share: Literal["image", "label"] = option(
            "image", "one α (and weight per stage) for an image, or for each label"
        )

        def __post_init__(self) -> None:
            require(len(self.stages) > 0, "neck.stages", self.stages, "one earlier stage or more, e.g. stage1")
            require(len(set(self.stages)) == len(self.stages), "neck.stages", self.stages, "different stages")
            require(FINAL not in self.stages, "neck.stages", self.stages, "stages before the final one")
            require(self.queries >= 1, "neck.queries", self.queries, "1 or more")
            require(self.hidden >= 0, "neck.hidden", self.hidden, "0 or more")
            require(0 <= self.floor < 1, "neck.floor", self.floor, "at least 0 and below 1")
            require(
                self.start == 0 or self.floor < self.start < 1,
                "neck.start",
                self.start,
                "0, or above neck.floor and below 1",
            )
            require(self.alpha != "fixed" or self.start > 0, "neck.start", self.start, "above 0 with neck.alpha=fixed")
            learned = self.alpha == "learned"
            require(learned or self.floor == 0, "neck.floor", self.floor, f"0 with neck.alpha={self.alpha}")
            require(0 < self.beta < 1000, "neck.beta", self.beta, "above 0 and below 1000")

    def __init__(self, options: Options, *, channels: Mapping[str, int], num_labels: int) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels)
        self.stages = tuple(find_stage(stage, channels, "neck.stages") for stage in options.stages)
        require(len(set(self.stages)) == len(self.stages), "neck.stages", options.stages, "different stages")
        self.same_for_all_labels = options.share == "image"
        self.mapped = frozenset() if options.summary == "mean" else frozenset(self.stages)
        width, self.shares_of = channels[FINAL], num_labels if options.share == "label" else 1
        build = SUMMARIES[options.summary]
        self.summarise = nn.ModuleDict(
            {stage: build(channels[stage], width, options.hidden, options.queries) for stage in self.stages}
        )
        squashed = options.activation == "sigmoid" or (options.activation == "auto" and options.summary == "mean")
        self.activation = nn.Sigmoid() if squashed else nn.Identity()
        self.norm = nn.ModuleDict({stage: ToScale(width) for stage in self.stages if options.normalise})
        self.alpha = nn.Linear(width, self.shares_of) if options.alpha == "learned" else None  # W, b of Eq. 6
        if self.alpha is not None and options.start:
            nn.init.zeros_(self.alpha.weight)
            start = (options.start - options.floor) / (1 - options.floor)
            nn.init.constant_(self.alpha.bias, math.log(start / (1 - start)))
        several = len(options.stages) > 1
        self.weight = nn.Parameter(torch.zeros(self.shares_of, len(options.stages)), requires_grad=several)

    def reads(self, head_stages: Iterable[str]) -> set[str]:
        return super().reads(head_stages) | {FINAL}  # z, and α of it

    def forward(self, features: Features, trace: Trace | None = None) -> Weighted:
        """Eq. 5. On a map, the same ĥ is mixed into every place.

        With an α per label each label mixes what the head says of z and of every ĥ: for a linear head that is Eq. 5 with
        the label's own α, w(α ĥ + (1 − α) z) + b = α (w ĥ + b) + (1 − α)(w z + b).
        """
        alpha = self._alpha(features)  # [B, 1] or [B, N]
        weights = self.weight.softmax(dim=1)  # [1, S] or [N, S]
        if trace is not None and trace.shares is not None:
            trace.shares.update(self._shares(alpha, weights))
        hints = self._hints(features)  # S × [B, C]
        if self.options.share == "image":
            return [(None, features.but(**{FINAL: self._mixed(alpha, weights[0], hints, features.final)}))]
        parts: Weighted = [(1 - alpha, features)]
        for number, hint in enumerate(hints):
            places = hint[:, :, None, None].expand_as(features.final)
            parts.append((alpha * weights[:, number], features.but(**{FINAL: places})))
        return parts

    def _mixed(self, alpha: Tensor, weights: Tensor, hints: list[Tensor], z: Tensor) -> Tensor:
        """z' = α Σ_l w_l ĥ_l + (1 − α) z [B, C, H, W]"""
        alpha = alpha[:, :, None, None]  # [B, 1, 1, 1]
        hint = torch.stack([w * h for w, h in zip(weights, hints, strict=True)]).sum(dim=0)  # [B, C]
        return alpha * hint[:, :, None, None] + (1 - alpha) * z

    def _shares(self, alpha: Tensor, weights: Tensor) -> dict[str, Tensor]:
        """α w_l of every stage l: [B, 1], or [B, N] where each label has its own."""
        return {stage: alpha * weights[:, number] for number, stage in enumerate(self.stages)}

    def _alpha(self, features: Features) -> Tensor:
        z, o = features.final.mean(dim=(2, 3)), self.options
        if self.alpha is None:
            if o.alpha == "beta" and self.training:
                return Beta(o.beta, o.beta).sample(torch.Size((len(z), self.shares_of))).to(z)
            return z.new_full((len(z), self.shares_of), o.start if o.alpha == "fixed" else 0.5)
        alpha = torch.sigmoid(self.alpha(z))  # [B, 1] or [B, N]
        above_floor: Tensor = o.floor + (1 - o.floor) * alpha
        return above_floor

    def _hints(self, features: Features) -> list[Tensor]:
        """ĥ_l of every stage. [B, C] each"""
        hints = []
        z = features.final.mean(dim=(2, 3))
        for stage in self.stages:
            hint = self.activation(self.summarise[stage](features.stages[stage]))
            hints.append(self.norm[stage](hint, z) if stage in self.norm else hint)
        return hints


class ToScale(nn.Module):
    """Gives ĥ the mean and spread that z has over its channels, with a learned change of both per channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, hint: Tensor, z: Tensor) -> Tensor:
        normal = nn.functional.layer_norm(hint, hint.shape[-1:], self.gain, self.bias)  # [B, C]
        return normal * z.std(dim=1, keepdim=True) + z.mean(dim=1, keepdim=True)

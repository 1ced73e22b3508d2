"""The vision transformer with sparse experts (AdaMV-MoE) as the backbone of one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from manylabel.backbone.body import BODIES
from manylabel.backbone.moe_vit import MoeViT, stage_ends
from manylabel.backbone.stem import Stem
from manylabel.backbone.vit_size import size_of
from manylabel.backbone.vit_weights import begin_with
from manylabel.config import BackboneConfig, ExpertsConfig, VitConfig, option
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.require import require

TASK = "labels"
PIXELS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of ImageNet's
AS_THEY_ARE = ((0.0,) * 3, (1.0,) * 3)  # a stem normalises by itself


@BODIES.register("moe_vit")
class MoeVitBody(nn.Module):
    """A vision transformer with sparse experts and a router; stage1 … stage4 lie behind each quarter of its blocks."""

    traced = True
    channels_last = True

    @dataclass(frozen=True)
    class Options(VitConfig):
        experts: ExpertsConfig = option(ExpertsConfig(), "what its sparse layers hold")
        k: int = option(1, "experts of a token")

    def __init__(self, options: Options, *, config: BackboneConfig, load_weights: bool) -> None:
        super().__init__()
        o, side = options, config.image_size or 224
        size = size_of(o)
        if o.experts.sharing == "taps":
            raise ConfigError("backbone.options.experts.sharing=taps is for several tasks; use experts or dense")
        require(1 <= o.k <= o.experts.count, "backbone.options.k", o.k, f"from 1 to experts.count={o.experts.count}")
        stem = Stem(o.stem, o.patch, load_weights) if o.stem else None
        self.k = o.k
        self.vit = MoeViT(size, o.patch, o.experts, {TASK: side}, o.drop_path, stem)
        self.vit.recompute = o.recompute and config.freeze != "partial"
        found = begin_with(self.vit, o.weights) if o.weights is not None and load_weights else None
        self.trained = o.weights is not None
        mean, std = (found or PIXELS) if stem is None else AS_THEY_ARE
        self.num_features = size.width
        self.feature_info = [
            {"num_chs": size.width, "module": f"vit.blocks.{end - 1}"} for end in stage_ends(size.layers).values()
        ]
        self.pretrained_cfg = {"input_size": (3, side, side), "mean": mean, "std": std, "interpolation": "bicubic"}

    def forward_features(
        self, x: Tensor, trace: Trace | None = None, costs: dict[str, Tensor] | None = None, since: str | None = None
    ) -> Tensor:
        first = 0 if since is None else stage_ends(len(self.vit.blocks))[since]
        features = self.vit(x, TASK, self.k, trace, costs_from=first)
        if costs is not None:
            costs.update(features.costs)
        return features.final.movedim(1, 3)

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        return {
            "stem": r"^vit\.(?:embed|stem)",
            "blocks": [(r"^vit\.blocks\.(\d+)", None), (r"^vit\.norm", (99999,))],
        }

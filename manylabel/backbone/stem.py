"""A pre-trained network in front of a transformer: its maps take the place of patches (the hybrid form of ViT).

From scratch, a transformer needs more images than most people have; a frozen stem brings what is known already.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from manylabel.config import BackboneConfig
from manylabel.error import ConfigError
from manylabel.features import FINAL


class Stem(nn.Module):
    """images → the stage whose cells are `patch` pixels wide and all later ones, on its grid. [B, C, h, w]

    Later stages are spread out over the finer grid; each is normalised place by place, for they differ in scale.
    """

    def __init__(self, name: str, patch: int, load_weights: bool = True) -> None:
        super().__init__()
        from manylabel.backbone.backbone import Backbone  # which has bodies, which may have a stem

        self.patch, self.body = patch, Backbone(BackboneConfig(name, freeze="frozen"), load_weights)
        side = 8 * patch
        every = [stage for stage in self.body.channels if stage != FINAL]
        self.body.select([*every, FINAL])
        with torch.no_grad():
            found = self.body(torch.zeros(1, 3, side, side)).stages
        strides = {stage: side / found[stage].shape[-1] for stage in (*every, FINAL)}
        if patch not in strides.values():
            known = ", ".join(f"{stride:g}" for stride in sorted(set(strides.values())))
            raise ConfigError(
                f"backbone.options.stem: {name} has no map with {patch} pixels a cell; set backbone.options.patch to one of "
                f"{known}"
            )
        self.read = [stage for stage in strides if strides[stage] > patch]
        self.read.insert(0, [stage for stage in strides if strides[stage] == patch][-1])
        self.body.select(self.read)
        self.channels = sum(self.body.channels[stage] for stage in self.read)

    def forward(self, images: Tensor) -> Tensor:
        size = [math.ceil(side / self.patch) for side in images.shape[-2:]]
        with torch.no_grad():
            stages = self.body(images).stages
            maps = [
                F.layer_norm(m := stages[s].permute(0, 2, 3, 1), m.shape[-1:]).permute(0, 3, 1, 2) for s in self.read
            ]
            return torch.cat([m if list(m.shape[-2:]) == size else _spread(m, size) for m in maps], dim=1)


def _spread(map: Tensor, size: list[int]) -> Tensor:
    return F.interpolate(map, size, mode="bilinear", align_corners=False)

"""Concatenation: earlier stages stand beside the backbone's output, the plain alternative to mixing (RM's section 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from manylabel.config import option
from manylabel.core.trace import Trace
from manylabel.features import FINAL, Features, find_stage
from manylabel.neck.base import NECKS, Neck, Weighted
from manylabel.neck.mixup import ToScale
from manylabel.require import require


@NECKS.register("concat")
class Concatenation(Neck):
    """z' = [z; ĥ_1; ĥ_2; …] with ĥ_l the mean of stage l over all places, brought to the scale of z"""

    @dataclass(frozen=True)
    class Options:
        stages: tuple[str, ...] = option(
            ("stage-2",), "the earlier stages that are appended: rm1, rm2, rm3 (strides 4, 8, 16), a stride, or a name"
        )

        def __post_init__(self) -> None:
            require(len(self.stages) > 0, "neck.stages", self.stages, "one earlier stage or more, e.g. stage1")
            require(FINAL not in self.stages, "neck.stages", self.stages, "stages before the final one")

    def __init__(self, options: Options, *, channels: Mapping[str, int], num_labels: int) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels)
        self.stages = tuple(find_stage(stage, channels, "neck.stages") for stage in options.stages)
        require(len(set(self.stages)) == len(self.stages), "neck.stages", options.stages, "different stages")
        self.channels[FINAL] += sum(channels[stage] for stage in self.stages)
        self.norm = nn.ModuleDict({stage: ToScale(channels[stage]) for stage in self.stages})

    def reads(self, head_stages: Iterable[str]) -> set[str]:
        return super().reads(head_stages) | {FINAL}

    def forward(self, features: Features, trace: Trace | None = None) -> Weighted:
        """On a map, the same ĥ stands at every place."""
        final, z = features.final, features.final.mean(dim=(2, 3))
        parts = [final]
        for stage in self.stages:
            hint = self.norm[stage](features.stages[stage].mean(dim=(2, 3)), z)  # [B, C_l]
            parts.append(hint[:, :, None, None].expand(-1, -1, *final.shape[2:]))
        return [(None, features.but(**{FINAL: torch.cat(parts, dim=1)}))]

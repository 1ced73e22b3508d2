"""What a backbone gives: named stages as maps. Tokens are the same numbers in another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

FINAL = "final"


@dataclass(frozen=True)
class Features:
    """Stages by name, each a map [B, C, H, W]; a transformer's patch tokens are laid out on their grid."""

    stages: Mapping[str, Tensor]
    prefix: Tensor | None = None  # [B, P, C]: class and register tokens of the final stage, where there are any

    @property
    def final(self) -> Tensor:
        return self.stages[FINAL]  # [B, C, H, W]

    def tokens(self, stage: str = FINAL) -> Tensor:
        return self.stages[stage].flatten(2).transpose(1, 2)  # [B, H·W, C]

    def grid(self, stage: str = FINAL) -> tuple[int, int]:
        height, width = self.stages[stage].shape[-2:]
        return height, width

    def to(self, device: object) -> Features:
        moved = {name: stage.to(device, non_blocking=True) for name, stage in self.stages.items()}  # type: ignore[call-overload]
        return Features(moved, None if self.prefix is None else self.prefix.to(device))  # type: ignore[call-overload]

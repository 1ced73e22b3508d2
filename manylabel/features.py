"""What a backbone gives: named stages as maps. Tokens are the same numbers in another shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor

from manylabel.error import ConfigError
from manylabel.suggest import closest

FINAL = "final"
ENTRY = "entry"  # what the first trained layer of a half-frozen backbone takes, in the shape that its family gives it


def find_stage(name: str, stages: Iterable[str], where: str, whose: str = "the backbone") -> str:
    """A stage by its name. stage-1 is the last one before `final`, stage-2 the one before it: so a recipe can name the
    last stage that is finer than the output of any backbone."""
    known = list(stages)
    numbered = [stage for stage in known if stage.startswith("stage")]
    back = name.removeprefix("stage-")
    if back != name and back.isdecimal() and 1 <= int(back) <= len(numbered):
        return numbered[-int(back)]
    if name not in known:
        raise ConfigError(f"{where}: {whose} has no stage {name!r}{closest(name, known)}; it has {', '.join(known)}")
    return name


@dataclass(frozen=True)
class Features:
    """Stages by name, each a map [B, C, H, W]; a transformer's patch tokens are laid out on their grid."""

    stages: Mapping[str, Tensor]
    prefix: Tensor | None = None  # [B, P, C]: class and register tokens of the final stage, where there are any
    size: tuple[int, int] | None = None  # (height, width) of the images in pixels, where they were seen
    costs: Mapping[str, Tensor] = field(default_factory=dict)  # what the network costs beside its task, in training

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
        return replace(self, stages=moved, prefix=None if self.prefix is None else self.prefix.to(device))  # type: ignore[call-overload]

    def but(self, **stages: Tensor) -> Features:
        """The same with other maps for some stages."""
        return replace(self, stages={**self.stages, **stages})

    def part(self, images: slice) -> Features:
        """Some images of the batch."""
        prefix = None if self.prefix is None else self.prefix[images]
        return replace(self, stages={name: stage[images] for name, stage in self.stages.items()}, prefix=prefix)

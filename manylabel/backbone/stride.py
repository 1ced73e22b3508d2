"""Stages by their stride, as timm tells it, and RM's blocks rm1, rm2, rm3, which end at strides 4, 8, 16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manylabel.error import ConfigError

BLOCKS = {"rm1": 4, "rm2": 8, "rm3": 16}


def merged_stages(body: Any) -> dict[str, str]:
    """merged1, …: the output of patch merging behind stage1, …, by its module's name. Swin's blocks as released end there;
    in timm it is where the next stage begins."""
    infos = list(getattr(body, "feature_info", []))
    places = {f"merged{i}": f"{info['module']}.downsample" for i, info in enumerate(infos) if i and "module" in info}
    modules = dict(body.named_modules())
    return {name: place for name, place in places.items() if type(modules.get(place)).__name__ == "PatchMerging"}


def strides_of(body: Any, merged: Mapping[str, str]) -> dict[str, int]:
    """Pixels of an image for each place of a stage, where the family tells."""
    infos = list(getattr(body, "feature_info", []))
    told = {f"stage{i + 1}": int(info["reduction"]) for i, info in enumerate(infos) if info.get("reduction")}
    after = {name: told.get(f"stage{int(name.removeprefix('merged')) + 1}") for name in merged}
    return {**told, **{name: stride for name, stride in after.items() if stride}}


def at_stride(name: str, strides: Mapping[str, int], where: str, whose: str) -> str:
    """The stage that rm1 … rm3 or a number means; other names stay what they are. RM's block of a Swin is the merged one."""
    wanted = BLOCKS.get(name) or (int(name) if name.isdecimal() else None)
    if wanted is None:
        return name
    told = {stage: stride for stage, stride in strides.items() if stage.startswith("stage")}
    listed = ", ".join(f"{stage} ({stride})" for stage, stride in told.items())
    if len(told) > 1 and len(set(told.values())) == 1:
        raise ConfigError(
            f"{where}={name}: all stages of {whose} have stride {next(iter(told.values()))}, so none of them is finer than "
            f"another; name one by its number, e.g. {list(told)[len(told) // 2 - 1]}"
        )
    found = [stage for stage, stride in told.items() if stride == wanted]
    if not found:
        has = f"it has {listed}" if told else "it does not tell its strides; name a stage, e.g. stage1"
        raise ConfigError(f"{where}={name}: {whose} has no stage of stride {wanted}; {has}")
    merged = found[-1].replace("stage", "merged")
    return merged if name in BLOCKS and merged in strides else found[-1]

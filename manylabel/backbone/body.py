"""What a kind of backbone is: a body in timm's manner. To add one, write it in a file of this room, like moe_vit_body.py."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from manylabel.error import ConfigError
from manylabel.registry import Registry

BODIES = Registry("backbone")


class Body(Protocol):
    """A module, built as `cls(options, config=BackboneConfig, load_weights=bool)`. Freezing, normalisation, stages by name,
    the cut of partial training and explanations are the work of `Backbone`, which has a body.

    It may have more: `trained = True` where it began with trained weights; `channels_last` where its maps are [B, H, W, C];
    `num_prefix_tokens` where it gives tokens; `forward_intermediates` and `group_matcher` as timm's models have them; and
    `traced`, where `forward_features(x, trace=…, costs=…, since=…)` fills a trace and, in training, a dict with what the
    network costs beside its task, of what lies behind the stage `since` or of all. Where `per_task` is set, it has parts of
    its own for each task: it is built with `tasks={name: side of its images}`, and `forward_features` takes `task=`, too.
    """

    num_features: int  # channels of the final map
    feature_info: Any  # of each stage, in order: {"num_chs": C, "module": the submodule whose output it is}
    pretrained_cfg: Any  # "input_size" (3, S, S), "mean" and "std"; perhaps "interpolation" and "crop_pct"

    def forward_features(self, x: Tensor) -> Tensor:
        """Normalised images [B, 3, H, W] → the final map [B, C, h, w], or tokens [B, P, C]."""


def check_body(body: Any, name: str) -> None:
    """Stop at what a body lacks, before anything is built on it."""
    for what in ("num_features", "feature_info", "pretrained_cfg", "forward_features"):
        if not hasattr(body, what):
            raise ConfigError(
                f"backbone {name} ({type(body).__name__}) has no {what}; manylabel/backbone/body.py says what a body has"
            )
    missing = [key for key in ("input_size", "mean", "std") if key not in body.pretrained_cfg]
    if missing:
        raise ConfigError(f"backbone {name}: pretrained_cfg has no {', '.join(missing)}")
    for i, stage in enumerate(body.feature_info):
        if "num_chs" not in stage or "module" not in stage:
            raise ConfigError(f"backbone {name}: feature_info[{i}] needs num_chs (its channels) and module")


def brief(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]

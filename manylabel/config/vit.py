"""Options of AdaMV-MoE's vision transformer (backbone.name=moe_vit): its size, and what its sparse layers hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from manylabel.config.option import option
from manylabel.require import require


@dataclass(frozen=True)
class VitConfig:
    """The vision transformer (Table 2 of the AdaMV-MoE paper has its sizes by name)."""

    size: Literal["small*", "small", "base", "uvit-base", "tiny", "own"] = option(
        "small*", "a size by name: layers, heads, width, hidden; own = the four settings below"
    )
    layers: int = option(0, "transformer layers; 0 = as the size has it")
    heads: int = option(0, "attention heads; 0 = as the size has it")
    width: int = option(0, "channels of a token; 0 = as the size has it")
    hidden: int = option(0, "hidden width of an MLP, so of one expert; 0 = as the size has it")
    patch: int = option(16, "side of a patch in pixels")
    windows: tuple[float, ...] = option(
        (), "side of every layer's attention windows as a share of the map's, 1 = global; empty = as the size has it"
    )
    drop_path: float = option(
        0.0, "share of images for which the last layer is skipped in training; less in earlier ones"
    )
    stem: str | None = option(
        None, "a pre-trained backbone, kept frozen, whose maps take the place of patches, e.g. efficientnet_lite0"
    )

    recompute: bool = option(
        False, "compute every layer again in the backward pass instead of keeping it: less memory, a third more time"
    )

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "width", "hidden"):
            require(getattr(self, name) >= 0, f"backbone.options.{name}", getattr(self, name), "0 or more")
        require(self.layers <= 1000, "backbone.options.layers", self.layers, "at most 1000")
        require(self.patch >= 1, "backbone.options.patch", self.patch, "1 or more")
        require(
            all(0 < share <= 1 for share in self.windows),
            "backbone.options.windows",
            self.windows,
            "shares above 0, at most 1",
        )
        require(0 <= self.drop_path < 1, "backbone.options.drop_path", self.drop_path, "at least 0 and below 1")


@dataclass(frozen=True)
class ExpertsConfig:
    """What tasks share, and how: one dense network, sparse experts, or layers with a change for each task."""

    sharing: Literal["dense", "experts", "taps", "taps_released"] = option(
        "experts",
        "dense = all weights for all tasks; experts = sparse ones; taps = a learned choice of layers per task; "
        "taps_released = of MLPs alone, on shared weights that are frozen after train.first, as AdaMV-MoE's code has it",
    )
    count: int = option(8, "E: experts of a layer")
    where: Literal["every_two", "early", "middle", "later", "all"] = option("every_two", "which layers have experts")
    hidden: int = option(
        0, "hidden width of an expert; 0 = that of the MLP whose place it takes (M³ViT: that of a token)"
    )
    router: Literal["task", "agnostic", "conditioned"] = option(
        "task", "a router for every task, one for all, or one that also reads which task it is (M³ViT)"
    )
    router_layers: int = option(1, "layers of a router: linear ones with GELU between them, as wide as a token")
    alike: bool = option(
        False,
        "let the experts of a layer begin as nearly the same network, so that a token may change its expert early on",
    )
    noise: float = option(1.0, "noise of the router's logits in training, as a multiple of 1/E")
    renormalise: bool = option(False, "let the weights of the chosen experts add up to 1")
    capacity: float = option(1.05, "slots of an expert as a multiple of the even share; 0 = every token is served")
    static: bool = option(
        False,
        "compute every expert on every token: torch.compile of the transformer has no breaks then; E/k times the cost",
    )
    priority: bool = option(False, "the surest tokens get slots first, instead of the first ones")
    importance: float = option(0.005, "weight of the importance loss")
    load: float = option(0.005, "weight of the load loss")
    z_loss: float = option(0.0, "weight of the router's z-loss")
    taps_penalty: float = option(0.1, "with taps: what the scores of layers that a task changes for itself cost")

    def __post_init__(self) -> None:
        require(self.count >= 1, "backbone.options.experts.count", self.count, "1 or more")
        require(self.hidden >= 0, "backbone.options.experts.hidden", self.hidden, "0 or more")
        layers = self.router_layers
        require(1 <= layers <= 100, "backbone.options.experts.router_layers", layers, "1 or more, at most 100")
        for name in ("noise", "capacity", "importance", "load", "z_loss", "taps_penalty"):
            require(getattr(self, name) >= 0, f"backbone.options.experts.{name}", getattr(self, name), "0 or more")

"""Sizes of vision transformers by name (AdaMV-MoE, Table 2), and which of their layers hold experts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from manylabel.config import VitConfig
from manylabel.require import require


@dataclass(frozen=True)
class VitSize:
    """Everything that decides the shapes of a transformer's weights, and how far its layers look."""

    layers: int
    heads: int
    width: int
    hidden: int
    windows: tuple[float, ...] = ()  # side of the attention windows of each layer as a share of the map's; () = global


SIZES = {
    "small*": VitSize(6, 6, 384, 1536),
    "small": VitSize(12, 6, 384, 1536),
    "base": VitSize(12, 12, 768, 3072),  # Table 2 says 6 heads; ViT-Base has 12
    # UViT widens its windows layer by layer until the last ones see everything; these three steps are ours.
    "uvit-base": VitSize(18, 6, 384, 1536, (0.25,) * 6 + (0.5,) * 6 + (1.0,) * 6),
    "tiny": VitSize(4, 3, 96, 192),
}


def size_of(config: VitConfig) -> VitSize:
    """The size by its name, with whatever was set otherwise."""
    own = {name: value for name in ("layers", "heads", "width", "hidden") if (value := getattr(config, name))}
    if config.size == "own":
        missing = [f"backbone.options.{name}" for name in ("layers", "heads", "width", "hidden") if name not in own]
        require(not missing, "backbone.options.size", "own", f"beside {', '.join(missing)}")
    size = replace(SIZES["small*" if config.size == "own" else config.size], **own)
    if config.windows:
        size = replace(size, windows=config.windows)
    elif "layers" in own:
        size = replace(size, windows=())
    require(size.width % size.heads == 0, "backbone.options.width", size.width, f"a multiple of the {size.heads} heads")
    require(
        len(size.windows) in (0, size.layers),
        "backbone.options.windows",
        size.windows,
        f"empty, or one for each of {size.layers} layers",
    )
    return size


def sparse_layers(where: str, layers: int) -> tuple[int, ...]:
    """Which layers have experts (Table 5): every second one, or one half of them."""
    half = layers // 2
    first = {"early": 0, "middle": (layers - half) // 2, "later": layers - half}
    if where == "every_two":
        return tuple(range(1, layers, 2))
    if where == "all":
        return tuple(range(layers))
    return tuple(range(first[where], first[where] + half))

"""What can be in a scene: labels, how often they come, and which need or forbid each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from manylabel.data.scenes.dice import Dice

TIMES = {"day": 0.56, "dusk": 0.22, "night": 0.22}
TERRAINS = {"meadow": 0.36, "sea": 0.26, "town": 0.24, "desert": 0.14}

Layer = Literal["heaven", "cloud", "air", "water", "ground", "anywhere"]


@dataclass(frozen=True)
class Kind:
    """How objects of one label are laid out."""

    layer: Layer
    width: float  # of its box, when the longer side is 1
    height: float
    most: int = 1  # instances in one scene
    # Share of its box that nearer boxes may cover: about 0.4 of what its slimmest drawing fills of the box,
    # so that even a drawing covered at its worst place stays visible to about 60 %.
    cover: float = 0.1


KINDS: dict[str, Kind] = {
    "sun": Kind("heaven", 1.0, 1.0, cover=0.12),
    "moon": Kind("heaven", 1.0, 1.0, cover=0.06),
    "cloud": Kind("cloud", 1.0, 0.55, most=3, cover=0.18),
    "bird": Kind("air", 1.0, 0.7, most=4, cover=0.03),
    "plane": Kind("air", 1.0, 0.5, cover=0.04),
    "kite": Kind("air", 0.7, 1.0, cover=0.045),
    "balloon": Kind("air", 0.72, 1.0, cover=0.18),
    "tree": Kind("ground", 0.7, 1.0, most=3, cover=0.07),
    "flower": Kind("ground", 0.6, 1.0, most=3, cover=0.09),
    "mushroom": Kind("ground", 0.9, 1.0, most=2, cover=0.16),
    "cactus": Kind("ground", 0.65, 1.0, most=2, cover=0.15),
    "house": Kind("ground", 1.0, 0.95, most=3, cover=0.2),
    "lighthouse": Kind("anywhere", 0.45, 1.0, cover=0.18),
    "car": Kind("ground", 1.0, 0.5, cover=0.18),
    "lamp": Kind("ground", 0.35, 1.0, most=2, cover=0.05),
    "person": Kind("ground", 0.42, 1.0, most=2, cover=0.15),
    "dog": Kind("ground", 1.0, 0.75, cover=0.1),
    "umbrella": Kind("ground", 1.0, 0.9, cover=0.08),
    "boat": Kind("water", 1.0, 0.9, cover=0.13),
    "fish": Kind("water", 1.0, 0.6, most=2, cover=0.045),
}

LABELS: tuple[str, ...] = (*TIMES, *TERRAINS, "rain", *KINDS)

# Probability of the objects that depend on the terrain alone; an object not listed for a terrain never occurs there.
GROWN: dict[str, dict[str, float]] = {
    "tree": {"meadow": 0.62, "town": 0.34, "sea": 0.22, "desert": 0.16},
    "flower": {"meadow": 0.38, "town": 0.16, "sea": 0.05, "desert": 0.05},
    "mushroom": {"meadow": 0.075},
    "cactus": {"desert": 0.52},
    "house": {"town": 0.50, "meadow": 0.20, "sea": 0.10, "desert": 0.06},
    "lighthouse": {"sea": 0.045},
    "car": {"town": 0.34, "meadow": 0.09, "desert": 0.18, "sea": 0.05},
    "lamp": {"town": 0.30, "sea": 0.08, "meadow": 0.04},
    "boat": {"sea": 0.44},
    "fish": {"sea": 0.22},
    "person": {"town": 0.44, "meadow": 0.32, "sea": 0.34, "desert": 0.14},
}

# What a scene gets when chance left it nearly empty.
TYPICAL = {"meadow": "tree", "sea": "boat", "town": "house", "desert": "cactus"}

EXCLUSIVE: tuple[frozenset[str], ...] = (
    frozenset(TIMES),
    frozenset(TERRAINS),
    frozenset({"sun", "moon"}),
    frozenset({"sun", "night"}),
    frozenset({"moon", "day"}),
    frozenset({"sun", "rain"}),
    frozenset({"kite", "rain"}),
    frozenset({"kite", "night"}),
    frozenset({"balloon", "rain"}),
    frozenset({"balloon", "night"}),
)

# label → what is always there with it
IMPLIES: dict[str, tuple[str, ...]] = {
    "umbrella": ("rain", "person"),
    "kite": ("person",),
    "boat": ("sea",),
    "fish": ("sea",),
    "lighthouse": ("sea",),
    "cactus": ("desert",),
    "mushroom": ("meadow",),
}


@dataclass(frozen=True)
class Setting:
    """The part of a scene that has no outline of its own."""

    time: str
    terrain: str
    rain: bool


def choose(dice: Dice) -> tuple[Setting, list[str]]:
    """The setting of a scene and the labels of its objects, in the order of LABELS."""
    time, terrain = dice.weighted(TIMES), dice.weighted(TERRAINS)
    rain = dice.chance(0.02 if terrain == "desert" else 0.22)
    dry, light = not rain, time != "night"
    has: dict[str, bool] = {}
    has["sun"] = dice.chance(0.48) and light and dry
    has["moon"] = dice.chance({"night": 0.42, "dusk": 0.18, "day": 0.0}[time]) and not has["sun"]
    has["cloud"] = dice.chance(0.88 if rain else 0.28)
    has["bird"] = dice.chance(0.32 if light else 0.08)
    has["plane"] = dice.chance(0.065)
    has["balloon"] = dice.chance(0.06) and light and dry
    for label, chances in GROWN.items():
        has[label] = dice.chance(chances.get(terrain, 0.0))
    has["kite"] = dice.chance(0.30) and has["person"] and light and dry
    has["umbrella"] = dice.chance(0.66) and has["person"] and rain
    has["dog"] = dice.chance(0.30 if has["person"] else 0.012)
    for label in (TYPICAL[terrain], "cloud"):
        if sum(has.values()) < 2:
            has[label] = True
    return Setting(time, terrain, rain), [label for label in KINDS if has[label]]


def all_labels(setting: Setting, objects: Iterable[str]) -> frozenset[str]:
    weather = ("rain",) if setting.rain else ()
    return frozenset((setting.time, setting.terrain, *weather, *objects))

"""Where everything stands, in shares of the image side, so that a scene is the same at every size.

Placing always succeeds: objects shrink until they fit, and at worst stand in a row. So labels never depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from manylabel.data.scenes.catalogue import KINDS, Setting, choose
from manylabel.data.scenes.dice import Dice

SMALLEST, LARGEST = 0.045, 0.40  # longer side of an object
USUAL_MOST = 9  # objects; only many labels at once give more
TINY = 0.08  # objects below this are never covered at all…
GAP = 1 / 64  # …and keep this distance, a pixel in the smallest picture
EDGE = 0.012

_DEPTH = {"heaven": 0, "cloud": 1, "air": 2}  # the rest stands on something and is ordered by its feet


@dataclass(frozen=True)
class Ground:
    """Where sky, water and land meet."""

    horizon: float
    shore: float  # land begins here; equal to the horizon where there is no water


@dataclass(frozen=True)
class Thing:
    """One object and its box."""

    label: str
    number: int  # names the random stream of its look
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def depth(self) -> tuple[float, int]:
        """Larger is nearer to the viewer."""
        return (_DEPTH.get(KINDS[self.label].layer, 3 + self.bottom), self.number)


@dataclass(frozen=True)
class Plan:
    """A scene before it is drawn; things are ordered from far to near."""

    setting: Setting
    ground: Ground
    things: tuple[Thing, ...]


def plan_scene(seed: int, index: int) -> Plan:
    setting, labels = choose(Dice("labels", seed, index))
    dice = Dice("layout", seed, index)
    horizon = dice.uniform(0.38, 0.5) if setting.terrain == "sea" else dice.uniform(0.42, 0.62)
    ground = Ground(horizon, dice.uniform(0.78, 0.88) if setting.terrain == "sea" else horizon)
    things = place(_gather(labels, dice), ground, dice)
    return Plan(setting, ground, tuple(sorted(things, key=lambda thing: thing.depth)))


def _gather(labels: Sequence[str], dice: Dice) -> list[Thing]:
    """Every object with its size, not yet placed."""
    crowd = list(labels)
    for label in labels:
        for _ in range(KINDS[label].most - 1):
            if len(crowd) < USUAL_MOST and dice.chance(0.5):
                crowd.append(label)
    things = []
    for number, label in enumerate(crowd):
        kind, size, squeeze = KINDS[label], dice.log_uniform(SMALLEST, LARGEST), dice.uniform(0.87, 1.15)
        if kind.layer == "heaven":  # sun and moon stay round
            squeeze = 1.0
        width, height = kind.width * squeeze, kind.height / squeeze
        unit = size / max(width, height)
        things.append(Thing(label, number, 0.0, 0.0, width * unit, height * unit))
    return things


def place(things: Sequence[Thing], ground: Ground, dice: Dice) -> list[Thing]:
    """The things at places where each stays visible; from large to small, smaller all together if need be."""
    for largest in (LARGEST, 0.25, 0.15, 0.08):
        placed: list[Thing] = []
        for thing in sorted(things, key=lambda t: (-max(t.width, t.height), t.number)):
            spot = _find_spot(_resized(thing, min(max(thing.width, thing.height), largest)), placed, ground, dice)
            if spot is None:
                break
            placed.append(spot)
        else:
            return placed
    return in_a_row(things, ground)


def in_a_row(things: Sequence[Thing], ground: Ground) -> list[Thing]:
    """The last resort: everything as small as can be, side by side."""
    slot = 1.0 / len(things)
    row = []
    for i, thing in enumerate(things):
        thing = _resized(thing, min(SMALLEST, 0.95 * (slot - GAP)))
        low, high = _feet(thing, ground)
        row.append(replace(thing, left=slot * (i + 0.5) - thing.width / 2, top=(low + high) / 2 - thing.height))
    return row


def _resized(thing: Thing, size: float) -> Thing:
    scale = size / max(thing.width, thing.height)
    return replace(thing, width=thing.width * scale, height=thing.height * scale)


def _feet(thing: Thing, ground: Ground) -> tuple[float, float]:
    """Where the lower edge of a thing may be."""
    low, high = {
        "heaven": (EDGE, ground.horizon - 0.01),
        "cloud": (EDGE, ground.horizon - 0.01),
        "air": (EDGE, ground.horizon + 0.03),
        "water": (ground.horizon + 0.02, ground.shore - 0.01),
        "ground": (ground.shore + 0.03, 1.0 - EDGE),
        "anywhere": (ground.horizon + 0.02, 1.0 - EDGE),
    }[KINDS[thing.label].layer]
    low = max(low, thing.height + EDGE)  # the upper edge stays in the picture
    return low, max(low, high)


def _find_spot(thing: Thing, placed: Sequence[Thing], ground: Ground, dice: Dice) -> Thing | None:
    carrier = next((other for other in placed if other.label == "person"), None) if thing.label == "umbrella" else None
    if carrier and (held := _held(thing, carrier)) and fits(held, placed):
        return held
    for attempt in range(60):
        if attempt % 6 == 5:
            thing = _resized(thing, max(SMALLEST, 0.85 * max(thing.width, thing.height)))
        low, high = _feet(thing, ground)
        left, foot = dice.uniform(EDGE, 1.0 - EDGE - thing.width), dice.uniform(low, high)
        candidate = replace(thing, left=left, top=foot - thing.height)
        if fits(candidate, placed):
            return candidate
    return None


def _held(umbrella: Thing, person: Thing) -> Thing | None:
    """The umbrella right above the person's head, in a size that person can carry; none if that leaves the picture."""
    held = _resized(umbrella, max(SMALLEST, min(LARGEST, 0.8 * person.height)))
    left = person.left + person.width / 2 - held.width / 2
    held = replace(held, left=left, top=person.top - held.height + 0.04 * person.height)
    inside = held.left > EDGE and held.right < 1 - EDGE and held.top > EDGE
    return held if inside else None


def fits(thing: Thing, placed: Sequence[Thing]) -> bool:
    """Whether the thing and all others stay visible when it is added."""
    everything = [*placed, thing]
    touched = [other for other in placed if _overlap(thing, other) > 0]
    return all(_covered(other, everything) <= _bearable(other) for other in (*touched, thing))


def _bearable(thing: Thing) -> float:
    return 0.0 if max(thing.width, thing.height) < TINY else KINDS[thing.label].cover


def _covered(thing: Thing, others: Sequence[Thing]) -> float:
    """At most this share of the thing's box is behind nearer boxes."""
    hidden = sum(_overlap(thing, other) for other in others if other is not thing and other.depth > thing.depth)
    return hidden / (thing.width * thing.height)


def _overlap(a: Thing, b: Thing) -> float:
    """Area that two boxes share; tiny things count with a gap around them."""
    gap = GAP if min(max(a.width, a.height), max(b.width, b.height)) < TINY else 0.0
    across = min(a.right, b.right) - max(a.left, b.left) + gap
    down = min(a.bottom, b.bottom) - max(a.top, b.top) + gap
    return across * down if across > 0 and down > 0 else 0.0

"""Colours and the light that falls on them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from manylabel.data.scenes.dice import Dice

Colour = tuple[int, int, int]

WHITE: Colour = (248, 246, 240)
INK: Colour = (42, 40, 52)
WOOD: Colour = (122, 84, 56)

# Clear, slightly muted paints for whatever people make: cars, kites, coats, hulls.
PAINTS: tuple[Colour, ...] = (
    (214, 68, 62),
    (236, 138, 52),
    (244, 196, 72),
    (98, 164, 92),
    (62, 142, 162),
    (66, 96, 170),
    (142, 92, 164),
    (222, 122, 148),
    (238, 234, 222),
    (84, 88, 104),
)


def shade(colour: Colour, factor: float) -> Colour:
    """Darker below 1, lighter above."""
    r, g, b = colour
    return (min(255, int(r * factor)), min(255, int(g * factor)), min(255, int(b * factor)))


def mix(a: Colour, b: Colour, share: float) -> Colour:
    """From a (share 0) to b (share 1)."""
    keep = 1.0 - share
    return (int(a[0] * keep + b[0] * share), int(a[1] * keep + b[1] * share), int(a[2] * keep + b[2] * share))


def vary(dice: Dice, colour: Colour, spread: int = 18) -> Colour:
    """A neighbour of a colour."""
    r, g, b = (min(255, max(0, int(c + dice.uniform(-spread, spread)))) for c in colour)
    return (r, g, b)


@dataclass(frozen=True)
class Light:
    """What the time of day does to a colour; far things also fade into the haze."""

    ambient: tuple[float, float, float]
    haze: Colour
    distance: float = 0.0  # 0 near … 1 lost in the haze

    def on(self, colour: Colour) -> Colour:
        r, g, b = colour
        kr, kg, kb = self.ambient
        lit = (min(255, int(r * kr)), min(255, int(g * kg)), min(255, int(b * kb)))
        return mix(lit, self.haze, self.distance) if self.distance else lit

    def at(self, distance: float) -> Light:
        return replace(self, distance=distance)

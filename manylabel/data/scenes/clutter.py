"""Unlabelled things that fill a landscape and can be taken for something: stones, bushes, posts, leaves, shells."""

from __future__ import annotations

import math
from collections.abc import Callable

from PIL import ImageDraw

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import PAINTS, WHITE, WOOD, Colour, Light, mix, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.layout import Ground
from manylabel.data.scenes.pen import Pen, bow

Clutter = Callable[[Pen, Dice, Colour], None]  # draws into the unit square, given the colour of the land


def grass(pen: Pen, dice: Dice, land: Colour) -> None:
    colour = shade(land, dice.uniform(0.7, 0.9))
    for _ in range(dice.count(3, 6)):
        foot, tip = dice.uniform(0.3, 0.7), dice.uniform(0.05, 0.95)
        pen.shape([(foot - 0.06, 1.0), (tip, dice.uniform(0.2, 0.6)), (foot + 0.06, 1.0)], colour)


def stone(pen: Pen, dice: Dice, land: Colour) -> None:
    colour, corners = mix(vary(dice, (140, 138, 140), 26), land, 0.25), dice.count(6, 9)
    rim = [(0.45 * dice.uniform(0.75, 1.1), math.pi * 2 * i / corners) for i in range(corners)]
    pen.shape([(0.5 + r * math.cos(a), 0.72 + 0.6 * r * math.sin(a)) for r, a in rim], shade(colour, 0.78))
    pen.shape([(0.47 + 0.8 * r * math.cos(a), 0.67 + 0.45 * r * math.sin(a)) for r, a in rim], colour)


def bush(pen: Pen, dice: Dice, land: Colour) -> None:
    leaf = vary(dice, dice.pick(((86, 134, 76), (120, 150, 80), (150, 130, 76), (70, 116, 84))))
    puffs = [
        (dice.uniform(0.2, 0.8), dice.uniform(0.55, 0.8), dice.uniform(0.14, 0.24)) for _ in range(dice.count(3, 5))
    ]
    for x, y, r in puffs:
        pen.disc(x, y, r, shade(leaf, 0.8))
    for x, y, r in puffs:
        pen.disc(x - 0.03, y - 0.04, r * 0.75, leaf)


def fence(pen: Pen, dice: Dice, land: Colour) -> None:
    colour = dice.pick((WOOD, shade(WOOD, 1.3), WHITE))
    for i in range(4):
        pen.shape(
            [
                (0.1 + 0.25 * i, 1.0),
                (0.1 + 0.25 * i, 0.5),
                (0.14 + 0.25 * i, 0.44),
                (0.18 + 0.25 * i, 0.5),
                (0.18 + 0.25 * i, 1.0),
            ],
            colour,
        )
    for y in (0.6, 0.82):
        pen.line([(0.0, y), (1.0, y)], 0.06, shade(colour, 0.85))


def signpost(pen: Pen, dice: Dice, land: Colour) -> None:
    pen.block(0.46, 0.2, 0.54, 1.0, shade(WOOD, 0.8))
    board = vary(dice, dice.pick((WOOD, *PAINTS)))
    pen.shape([(0.2, 0.2), (0.72, 0.2), (0.88, 0.32), (0.72, 0.44), (0.2, 0.44)], board)
    if dice.chance(0.4):
        pen.shape([(0.8, 0.5), (0.3, 0.5), (0.16, 0.6), (0.3, 0.7), (0.8, 0.7)], shade(board, 0.86))


def leaf(pen: Pen, dice: Dice, land: Colour) -> None:
    """Carried by the wind, and easily taken for a far bird."""
    colour = vary(dice, dice.pick(((176, 120, 60), (200, 90, 60), (120, 140, 70), (90, 84, 80))))
    turn = dice.uniform(0, 180)
    pen.oval(0.5, 0.5, 0.46, 0.17, colour, turn=turn)
    pen.oval(0.5, 0.5, 0.46, 0.03, shade(colour, 0.8), turn=turn)


def shell(pen: Pen, dice: Dice, land: Colour) -> None:
    colour = vary(dice, dice.pick(((240, 196, 180), (236, 226, 206), (224, 150, 130))))
    if dice.chance(0.5):
        pen.shape([*bow(0.5, 0.8, 0.4, 0.6, 180, 360), (0.5, 1.0)], colour)
        for x in (0.25, 0.5, 0.75):
            pen.line([(x, 0.4), (0.5, 0.95)], 0.04, shade(colour, 0.85))
    else:  # a starfish
        points = [
            (
                0.5 + (0.48 if i % 2 else 0.2) * math.cos(i * 0.628),
                0.6 + (0.38 if i % 2 else 0.16) * math.sin(i * 0.628),
            )
            for i in range(10)
        ]
        pen.shape(points, shade(colour, 0.9))


def buoy(pen: Pen, dice: Dice, land: Colour) -> None:
    colour = vary(dice, dice.pick(PAINTS))
    pen.shape([(0.35, 0.35), (0.65, 0.35), (0.8, 0.85), (0.2, 0.85)], colour)
    pen.block(0.28, 0.55, 0.72, 0.66, WHITE)
    pen.line([(0.5, 0.35), (0.5, 0.08)], 0.06, WOOD)
    pen.oval(0.5, 0.86, 0.42, 0.07, (220, 234, 240))


def rock_in_water(pen: Pen, dice: Dice, land: Colour) -> None:
    pen.shape([(0.05, 0.9), (0.2, 0.5), (0.45, 0.35), (0.75, 0.55), (0.95, 0.9)], vary(dice, (104, 104, 108)))
    pen.oval(0.5, 0.9, 0.49, 0.07, (220, 234, 240))


def crate(pen: Pen, dice: Dice, land: Colour) -> None:
    colour = vary(dice, dice.pick((WOOD, (168, 128, 82), (96, 116, 100))))
    pen.block(0.15, 0.4, 0.85, 1.0, colour)
    for y in (0.42, 0.68, 0.97):
        pen.line([(0.15, y), (0.85, y)], 0.05, shade(colour, 0.75))


def ripple(pen: Pen, dice: Dice, land: Colour) -> None:
    for y in (0.7, 0.85):
        pen.line([(0.0, y), (0.3, y - 0.06), (0.65, y + 0.03), (1.0, y)], 0.03, shade(land, 0.9))


# What lies on the land, in the water and in the air of each terrain, with repeats for what is common.
ON_LAND: dict[str, tuple[Clutter, ...]] = {
    "meadow": (grass, grass, grass, grass, grass, stone, stone, bush, bush, fence, signpost),
    "sea": (stone, shell, shell, ripple, ripple, ripple, grass, crate, signpost),
    "desert": (stone, stone, ripple, ripple, ripple, grass, grass, bush, signpost),
    "town": (stone, bush, bush, crate, fence, signpost, grass, grass),
}
IN_WATER: tuple[Clutter, ...] = (buoy, rock_in_water, rock_in_water)


def scatter(
    draw: ImageDraw.ImageDraw, side: int, setting: Setting, ground: Ground, land: Colour, light: Light, dice: Dice
) -> None:
    """Clutter of all sizes over the landscape, far ones first."""
    feet = sorted(dice.uniform(ground.shore + 0.02, 1.03) for _ in range(dice.count(10, 34)))
    for foot in feet:
        kind = dice.pick(ON_LAND[setting.terrain])
        _put(draw, side, kind, dice.uniform(-0.02, 1.0), foot, dice.log_uniform(0.02, 0.16), land, light, dice)
    if setting.terrain == "sea":
        for _ in range(dice.count(0, 5)):
            foot = dice.uniform(ground.horizon + 0.02, ground.shore - 0.02)
            _put(draw, side, dice.pick(IN_WATER), dice.roll(), foot, dice.log_uniform(0.02, 0.1), land, light, dice)
    for _ in range(dice.pick((0, 2, 4, 9))):
        _put(draw, side, leaf, dice.roll(), dice.uniform(0.05, 0.9), dice.log_uniform(0.015, 0.05), land, light, dice)


def _put(
    draw: ImageDraw.ImageDraw,
    side: int,
    kind: Clutter,
    x: float,
    foot: float,
    size: float,
    land: Colour,
    light: Light,
    dice: Dice,
) -> None:
    pixels = size * side
    pen = Pen(draw, (x * side - pixels / 2, foot * side - pixels, pixels, pixels), light, flip=dice.chance(0.5))
    kind(pen, dice, land)

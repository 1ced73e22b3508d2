"""What grows: tree, flower, mushroom, cactus."""

from __future__ import annotations

import math
from itertools import pairwise

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import WOOD, Colour, mix, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen, Point, bow

LEAVES: tuple[Colour, ...] = (
    (74, 138, 78),
    (104, 160, 76),
    (52, 118, 92),
    (140, 168, 70),
    (206, 132, 58),
    (196, 86, 62),
    (228, 168, 176),
)
PETALS: tuple[Colour, ...] = (
    (232, 84, 92),
    (246, 190, 70),
    (244, 240, 236),
    (170, 112, 196),
    (240, 140, 176),
    (98, 130, 214),
)
STEM: Colour = (84, 142, 76)


def tree(pen: Pen, dice: Dice, setting: Setting) -> None:
    leaf = vary(dice, dice.pick(LEAVES if setting.terrain in ("meadow", "town") else LEAVES[:4]))
    if setting.terrain in ("sea", "desert"):
        _palm(pen, dice, leaf)
    else:
        dice.pick((_broad, _broad, _fir, _poplar))(pen, dice, leaf)


def _broad(pen: Pen, dice: Dice, leaf: Colour) -> None:
    trunk = vary(dice, WOOD)
    pen.shape([(0.31, 0.55), (0.39, 0.55), (0.42, 0.99), (0.28, 0.99)], trunk)
    pen.line([(0.35, 0.7), (0.5, 0.52)], 0.035, trunk)
    crowns = [(0.2, 0.42, 0.19), (0.5, 0.42, 0.19), (0.35, 0.25, 0.23), (0.35, 0.48, 0.2)]
    moved = [
        (x + dice.uniform(-0.03, 0.03), y + dice.uniform(-0.02, 0.02), r * dice.uniform(0.88, 1.0))
        for x, y, r in crowns
    ]
    for x, y, r in moved:
        pen.disc(x, y, r, shade(leaf, 0.8))
    for x, y, r in moved:
        pen.disc(x - 0.025, y - 0.03, r * 0.8, leaf)
    pen.disc(0.28, 0.2, 0.085, shade(leaf, 1.15))
    for _ in range(dice.pick((0, 0, 6))):  # fruit
        pen.disc(dice.uniform(0.15, 0.55), dice.uniform(0.15, 0.55), 0.028, (220, 66, 60))


def _fir(pen: Pen, dice: Dice, leaf: Colour) -> None:
    pen.block(0.3, 0.82, 0.4, 0.99, vary(dice, WOOD))
    tiers = dice.count(3, 4)
    for i in reversed(range(tiers)):
        top, bottom, half = 0.01 + 0.7 * i / tiers * 0.9, 0.28 + 0.6 * (i + 0.4) / tiers, 0.13 + 0.21 * (i + 1) / tiers
        pen.shape([(0.35, top), (0.35 + half, bottom), (0.35 - half, bottom)], shade(leaf, 0.78))
        pen.shape([(0.35, top), (0.35 + half * 0.2, bottom), (0.35 - half, bottom)], leaf)


def _poplar(pen: Pen, dice: Dice, leaf: Colour) -> None:
    pen.block(0.315, 0.7, 0.385, 0.99, vary(dice, WOOD))
    pen.oval(0.35, 0.43, 0.22, 0.42, shade(leaf, 0.8))
    pen.oval(0.33, 0.42, 0.17, 0.38, leaf)
    pen.line([(0.35, 0.98), (0.35, 0.45)], 0.02, WOOD)
    pen.line([(0.35, 0.62), (0.44, 0.5)], 0.015, WOOD)


def _palm(pen: Pen, dice: Dice, leaf: Colour) -> None:
    lean = dice.uniform(0.04, 0.16)
    spine: list[Point] = [(0.35 - lean + 2 * lean * (t / 8) ** 1.6, 0.97 - 0.67 * t / 8) for t in range(9)]
    for i, ((x, y), (x2, y2)) in enumerate(pairwise(spine)):
        pen.line([(x, y), (x2, y2 - 0.01)], 0.075 - 0.004 * i, shade((156, 116, 76), 0.9 if i % 2 else 1.05))
    x, y = spine[-1]
    for angle in (-172, -150, -118, -62, -30, -8, 20, 160):
        turn = math.radians(angle + dice.uniform(-8, 8))
        reach = min(0.33, (x if math.cos(turn) < 0 else 0.7 - x) / abs(math.cos(turn)))
        middle = (x + 0.55 * reach * math.cos(turn), y + 0.75 * reach * math.sin(turn) - 0.07)
        tip = (x + reach * math.cos(turn), y + reach * math.sin(turn) * 0.7 + 0.12)
        pen.shape(
            [(x, y), (middle[0], middle[1] - 0.035), tip, (middle[0], middle[1] + 0.05)],
            shade(leaf, dice.uniform(0.75, 1.1)),
        )
    pen.disc(x - 0.03, y + 0.03, 0.032, (110, 74, 46))
    pen.disc(x + 0.035, y + 0.035, 0.032, (96, 64, 40))


def flower(pen: Pen, dice: Dice, setting: Setting) -> None:
    petal, stem = vary(dice, dice.pick(PETALS)), vary(dice, STEM)
    bend = dice.uniform(-0.05, 0.05)
    pen.line([(0.3 + bend, 0.99), (0.3 - bend, 0.7), (0.3, 0.3)], 0.045, stem)
    pen.oval(0.19, 0.8, 0.15, 0.055, shade(stem, 1.1), turn=28)
    pen.oval(0.42, 0.73, 0.14, 0.05, shade(stem, 0.9), turn=-30)
    dice.pick((_daisy, _daisy, _tulip, _poppy))(pen, dice, petal)


def _daisy(pen: Pen, dice: Dice, petal: Colour) -> None:
    count = dice.count(6, 10)
    for i in range(count):
        angle = 2 * math.pi * i / count
        pen.oval(
            0.3 + 0.17 * math.cos(angle),
            0.3 + 0.17 * math.sin(angle),
            0.12,
            0.068,
            shade(petal, 0.94 if i % 2 else 1.04),
            turn=math.degrees(angle),
        )
    pen.disc(0.3, 0.3, 0.095, dice.pick(((246, 196, 64), (110, 72, 50), (252, 232, 150))))


def _tulip(pen: Pen, dice: Dice, petal: Colour) -> None:
    pen.shape(
        [(0.12, 0.06), (0.3, 0.2), (0.48, 0.06), (0.52, 0.3), *bow(0.3, 0.32, 0.21, 0.19, 0, 180), (0.08, 0.3)],
        shade(petal, 0.86),
    )
    pen.oval(0.3, 0.28, 0.12, 0.23, petal)


def _poppy(pen: Pen, dice: Dice, petal: Colour) -> None:
    for x, y in ((0.17, 0.27), (0.43, 0.27), (0.3, 0.17), (0.3, 0.36)):
        pen.oval(x, y, 0.165, 0.145, shade(petal, dice.uniform(0.88, 1.05)))
    pen.disc(0.3, 0.27, 0.075, (54, 44, 58))


def mushroom(pen: Pen, dice: Dice, setting: Setting) -> None:
    cap = vary(dice, dice.pick(((212, 62, 54), (206, 62, 58), (168, 112, 70), (222, 160, 92), (150, 110, 150))))
    stalk: Colour = (240, 228, 206)
    fat, brim = dice.uniform(0.1, 0.17), dice.uniform(0.48, 0.56)
    pen.shape([(0.45 - fat * 0.8, brim), (0.45 + fat * 0.8, brim), (0.45 + fat, 0.95), (0.45 - fat, 0.95)], stalk)
    pen.oval(0.45, 0.94, fat, 0.05, stalk)
    pen.shape([(0.45, brim), (0.45 + fat * 0.8, brim), (0.45 + fat, 0.95), (0.45, 0.97)], shade(stalk, 0.88))
    pen.oval(0.45, brim, 0.43, 0.085, mix(stalk, cap, 0.25))
    pen.shape(bow(0.45, brim, 0.44, brim - 0.02, 180, 360, 22), cap)
    if dice.chance(0.65):
        for x, y, r in (
            (0.3, 0.3, 0.062),
            (0.5, 0.2, 0.07),
            (0.64, 0.38, 0.058),
            (0.44, 0.41, 0.045),
            (0.18, 0.43, 0.04),
        ):
            pen.oval(x, y * brim / 0.52, r, r * 0.85, (248, 240, 226))


def cactus(pen: Pen, dice: Dice, setting: Setting) -> None:
    green = vary(dice, dice.pick(((84, 146, 92), (64, 124, 92), (122, 156, 88))))
    if dice.chance(0.65):
        left, right = dice.uniform(0.42, 0.6), dice.uniform(0.34, 0.54)
        for x, y, top in ((0.1, left, left - 0.22), (0.55, right, right - 0.22)):
            pen.limb((0.325, y), (x, y), 0.13, shade(green, 0.86))
            pen.limb((x, y), (x, max(0.08, top)), 0.13, shade(green, 0.86))
        pen.limb((0.325, 0.12), (0.325, 0.92), 0.21, green)
        pen.block(0.22, 0.9, 0.43, 0.99, green)
        for x in (0.28, 0.37):
            pen.line([(x, 0.1), (x, 0.97)], 0.014, shade(green, 0.72))
    else:
        pen.oval(0.325, 0.66, 0.3, 0.33, green)
        for rx in (0.08, 0.19):
            pen.line(bow(0.325, 0.66, rx, 0.33, 95, 265), 0.014, shade(green, 0.72))
            pen.line(bow(0.325, 0.66, rx, 0.33, -85, 85), 0.014, shade(green, 0.72))
        pen.oval(0.325, 0.27, 0.13, 0.17, shade(green, 1.08))
    if dice.chance(0.5):
        pen.disc(0.325, 0.06, 0.058, dice.pick(PETALS))

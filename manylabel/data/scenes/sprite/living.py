"""Who lives there, and what they carry: person, dog, fish, umbrella."""

from __future__ import annotations

import math
from itertools import pairwise

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import INK, PAINTS, WHITE, Colour, mix, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen, Point, bow

SKINS: tuple[Colour, ...] = ((250, 214, 182), (226, 176, 134), (178, 124, 88), (118, 78, 56), (84, 56, 44))
HAIR: tuple[Colour, ...] = ((52, 40, 36), (112, 70, 42), (206, 158, 86), (168, 70, 42), (182, 178, 174))
FUR: tuple[Colour, ...] = ((150, 102, 64), (84, 62, 50), (222, 192, 146), (60, 58, 64), (232, 226, 214), (190, 128, 70))


def person(pen: Pen, dice: Dice, setting: Setting) -> None:
    skin, hair, coat, trousers = (
        dice.pick(SKINS),
        dice.pick(HAIR),
        vary(dice, dice.pick(PAINTS)),
        vary(dice, dice.pick(PAINTS)),
    )
    stride = dice.uniform(0.02, 0.1)
    skirt = dice.chance(0.4)
    for side, dim in ((-1, 0.8), (1, 1.0)):
        hip, foot = (0.21 + side * 0.045, 0.62), (0.21 + side * (0.035 + stride), 0.95)
        pen.limb(hip, foot, 0.08, shade(skin if skirt else trousers, dim))
        pen.oval(foot[0] + 0.025, 0.965, 0.06, 0.028, shade(INK, dim))
    raised = dice.chance(0.5)
    pen.limb((0.13, 0.36), (0.05, 0.57), 0.068, shade(coat, 0.8))
    pen.disc(0.05, 0.585, 0.034, skin)
    if skirt:
        pen.shape([(0.14, 0.31), (0.28, 0.31), (0.36, 0.72), (0.06, 0.72)], coat)
    else:
        pen.shape([(0.1, 0.34), (0.15, 0.3), (0.27, 0.3), (0.32, 0.34), (0.3, 0.65), (0.12, 0.65)], coat)
    hand: Point = (0.375, 0.2) if raised else (0.37, 0.55)
    pen.limb((0.29, 0.36), hand, 0.068, shade(coat, 0.9))
    pen.disc(hand[0], hand[1] + (-0.02 if raised else 0.02), 0.036, skin)
    pen.block(0.185, 0.25, 0.235, 0.31, shade(skin, 0.86))
    pen.disc(0.21, 0.16, 0.118, hair)
    pen.oval(0.22, 0.18, 0.098, 0.102, skin)
    pen.disc(0.2, 0.175, 0.014, INK)
    pen.disc(0.268, 0.175, 0.014, INK)
    if dice.chance(0.35):
        hat = vary(dice, dice.pick(PAINTS))
        pen.shape(bow(0.21, 0.12, 0.12, 0.11, 180, 360), hat)
        pen.oval(0.21, 0.12, 0.17, 0.028, shade(hat, 0.85))
    elif skirt:
        pen.oval(0.1, 0.22, 0.045, 0.1, hair, turn=10)


def dog(pen: Pen, dice: Dice, setting: Setting) -> None:
    fur = vary(dice, dice.pick(FUR))
    patch = dice.pick((fur, mix(fur, WHITE, 0.6), shade(fur, 0.6)))
    (_sitting if dice.chance(0.3) else _standing)(pen, dice, fur, patch)


def _dog_head(pen: Pen, dice: Dice, x: float, y: float, fur: Colour, patch: Colour) -> None:
    pen.disc(x, y, 0.135, fur)
    pen.oval(x + 0.12, y + 0.045, 0.1, 0.07, mix(fur, WHITE, 0.25))
    pen.disc(x + 0.2, y + 0.02, 0.03, INK)
    pen.disc(x + 0.045, y - 0.035, 0.021, INK)
    if dice.chance(0.6):
        pen.oval(x - 0.075, y + 0.04, 0.055, 0.135, shade(patch, 0.8), turn=12)
    else:
        pen.shape([(x - 0.12, y - 0.06), (x - 0.08, y - 0.2), (x + 0.02, y - 0.1)], shade(patch, 0.8))


def _standing(pen: Pen, dice: Dice, fur: Colour, patch: Colour) -> None:
    wag = dice.uniform(0.06, 0.24)
    pen.limb((0.17, 0.36), (0.05, wag), 0.055, fur)
    for x, dim in ((0.28, 0.75), (0.66, 0.75), (0.2, 1.0), (0.58, 1.0)):
        pen.limb((x, 0.48), (x + dice.uniform(-0.03, 0.03), 0.705), 0.075, shade(fur, dim))
    pen.limb((0.24, 0.42), (0.62, 0.4), 0.23, fur)
    pen.oval(0.38, 0.38, 0.12, 0.085, patch)
    pen.limb((0.64, 0.36), (0.72, 0.24), 0.14, fur)
    pen.line([(0.62, 0.3), (0.72, 0.36)], 0.035, (206, 62, 58))
    _dog_head(pen, dice, 0.75, 0.22, fur, patch)


def _sitting(pen: Pen, dice: Dice, fur: Colour, patch: Colour) -> None:
    pen.limb((0.3, 0.66), (0.14, 0.56), 0.055, fur)
    pen.oval(0.42, 0.57, 0.19, 0.17, shade(fur, 0.88))
    pen.shape([(0.36, 0.45), (0.52, 0.24), (0.66, 0.3), (0.62, 0.72), (0.42, 0.72)], fur)
    pen.oval(0.56, 0.44, 0.06, 0.12, patch)
    pen.limb((0.6, 0.45), (0.62, 0.705), 0.07, fur)
    pen.oval(0.45, 0.715, 0.1, 0.033, shade(fur, 0.88))
    _dog_head(pen, dice, 0.58, 0.22, fur, patch)


def fish(pen: Pen, dice: Dice, setting: Setting) -> None:
    body = vary(dice, dice.pick((*PAINTS[:8], (170, 186, 196))))
    fin, long = shade(body, 0.78), dice.chance(0.5)
    tall = 0.15 if long else 0.22
    pen.shape([(0.24, 0.3), (0.02, 0.1), (0.08, 0.3), (0.02, 0.5)], fin)
    pen.shape([(0.42, 0.3 - tall * 0.8), (0.5, 0.04), (0.72, 0.3 - tall * 0.7)], fin)
    pen.shape([(0.48, 0.3 + tall * 0.8), (0.46, 0.56), (0.62, 0.3 + tall * 0.8)], fin)
    pen.oval(0.58, 0.3, 0.39, tall, body)
    pen.shape([(0.22, 0.3), (0.4, 0.3 - tall * 0.8), (0.4, 0.3 + tall * 0.8)], body)
    pen.shape(bow(0.58, 0.3, 0.36, tall, 15, 165), mix(body, WHITE, 0.45))
    style = dice.pick(("stripes", "scales", "plain"))
    if style == "stripes":
        for x in (0.44, 0.58, 0.7):
            pen.line([(x, 0.3 - tall * 0.82), (x - 0.03, 0.3 + tall * 0.8)], 0.045, mix(fin, WHITE, 0.75))
    elif style == "scales":
        for x, y in ((0.4, 0.27), (0.5, 0.33), (0.5, 0.23), (0.6, 0.28), (0.6, 0.37)):
            pen.line(bow(x, y, 0.045, 0.05, 110, 250, 6), 0.016, fin)
    pen.line(bow(0.74, 0.3, 0.06, tall * 0.8, -75, 75, 8), 0.016, fin)
    pen.disc(0.87, 0.26, 0.038, WHITE)
    pen.disc(0.88, 0.26, 0.02, INK)


def umbrella(pen: Pen, dice: Dice, setting: Setting) -> None:
    first = vary(dice, dice.pick(PAINTS))
    second = dice.pick((shade(first, 0.84), shade(first, 0.84), WHITE))
    handle = dice.pick((INK, (132, 88, 54)))
    rim, folds = 0.46, dice.count(4, 6)
    pen.line([(0.5, 0.01), (0.5, 0.8)], 0.03, handle)
    pen.line(bow(0.56, 0.8, 0.06, 0.075, 180, 20), 0.036, handle)
    edge = [0.5 - 0.49 * math.cos(math.pi * i / folds) for i in range(folds + 1)]
    for i, (left, right) in enumerate(pairwise(edge)):
        reach = [(0.5 + (left - 0.5) * math.cos(t), rim - 0.4 * math.sin(t)) for t in (0.0, 0.3, 0.6, 0.9, 1.2, 1.57)]
        back = [(0.5 + (right - 0.5) * math.cos(t), rim - 0.4 * math.sin(t)) for t in (1.57, 1.2, 0.9, 0.6, 0.3, 0.0)]
        hem = bow((left + right) / 2, rim, (right - left) / 2, 0.06, 0, -180, 8)
        pen.shape([*reach, *back, *hem], second if i % 2 else first)

"""What people let fly: plane, kite, balloon."""

from __future__ import annotations

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import INK, PAINTS, WHITE, WOOD, Colour, mix, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen, bow

GLASS: Colour = (120, 176, 206)


def plane(pen: Pen, dice: Dice, setting: Setting) -> None:
    body, trim = (
        dice.pick((WHITE, WHITE, (226, 230, 236), vary(dice, dice.pick(PAINTS)))),
        vary(dice, dice.pick(PAINTS)),
    )
    dice.pick((_airliner, _biplane, _from_below))(pen, body, trim)


def _airliner(pen: Pen, body: Colour, trim: Colour) -> None:
    pen.shape([(0.08, 0.24), (0.02, 0.02), (0.12, 0.02), (0.26, 0.22)], trim)
    pen.shape([(0.1, 0.25), (0.01, 0.16), (0.08, 0.15), (0.24, 0.24)], shade(body, 0.8))
    pen.oval(0.52, 0.28, 0.46, 0.085, body)
    pen.shape([(0.06, 0.24), (0.6, 0.2), (0.6, 0.36), (0.3, 0.36)], body)
    pen.shape([(0.14, 0.31), (0.9, 0.31), (0.8, 0.35), (0.3, 0.36)], shade(body, 0.86))
    pen.shape([(0.5, 0.3), (0.28, 0.49), (0.38, 0.49), (0.66, 0.31)], shade(trim, 0.85))
    pen.oval(0.46, 0.42, 0.07, 0.03, shade(body, 0.7))
    for i in range(6):
        pen.disc(0.36 + 0.075 * i, 0.255, 0.017, GLASS)
    pen.shape([(0.85, 0.23), (0.92, 0.245), (0.94, 0.275), (0.86, 0.265)], INK)


def _biplane(pen: Pen, body: Colour, trim: Colour) -> None:
    pen.shape([(0.04, 0.2), (0.02, 0.06), (0.13, 0.06), (0.2, 0.24)], trim)
    pen.shape([(0.06, 0.22), (0.86, 0.17), (0.9, 0.24), (0.86, 0.34), (0.5, 0.38), (0.06, 0.27)], trim)
    for x in (0.48, 0.72):
        pen.line([(x, 0.07), (x, 0.37)], 0.018, WOOD)
    pen.block(0.38, 0.03, 0.84, 0.075, body)
    pen.block(0.36, 0.35, 0.8, 0.395, shade(body, 0.88))
    pen.disc(0.44, 0.17, 0.045, INK)
    pen.line([(0.62, 0.38), (0.66, 0.44)], 0.02, INK)
    pen.disc(0.66, 0.45, 0.045, INK)
    pen.oval(0.94, 0.25, 0.018, 0.17, shade(WOOD, 0.8))


def _from_below(pen: Pen, body: Colour, trim: Colour) -> None:
    pen.shape(
        [(0.46, 0.22), (0.3, 0.01), (0.38, 0.01), (0.66, 0.22), (0.66, 0.28), (0.38, 0.49), (0.3, 0.49), (0.46, 0.28)],
        shade(body, 0.88),
    )
    pen.shape(
        [(0.08, 0.23), (0.02, 0.12), (0.08, 0.12), (0.2, 0.23), (0.2, 0.27), (0.08, 0.38), (0.02, 0.38), (0.08, 0.27)],
        trim,
    )
    pen.oval(0.52, 0.25, 0.46, 0.055, body)
    pen.oval(0.93, 0.25, 0.05, 0.034, trim)


def kite(pen: Pen, dice: Dice, setting: Setting) -> None:
    first, second = vary(dice, dice.pick(PAINTS)), vary(dice, dice.pick(PAINTS))
    sway = dice.uniform(-0.12, 0.12)
    tail = [(0.35, 0.62), (0.35 + sway, 0.74), (0.35 - sway, 0.86), (0.35 + sway, 0.98)]
    pen.line(tail, 0.022, shade(first, 0.7))
    for x, y in tail[1:]:
        y = min(y, 0.95)
        pen.shape([(x, y), (x - 0.075, y - 0.04), (x - 0.075, y + 0.04)], second)
        pen.shape([(x, y), (x + 0.075, y - 0.04), (x + 0.075, y + 0.04)], second)
    if dice.chance(0.65):
        top, left, right, foot, middle = (0.35, 0.01), (0.03, 0.25), (0.67, 0.25), (0.35, 0.66), (0.35, 0.25)
        pen.shape([top, left, middle], first)
        pen.shape([top, right, middle], second)
        pen.shape([foot, left, middle], second)
        pen.shape([foot, right, middle], first)
        pen.line([top, foot], 0.016, shade(first, 0.6))
        pen.line([left, right], 0.016, shade(first, 0.6))
    else:
        pen.shape([(0.35, 0.04), (0.0, 0.52), (0.35, 0.42)], first)
        pen.shape([(0.35, 0.04), (0.7, 0.52), (0.35, 0.42)], second)
        pen.shape([(0.35, 0.34), (0.24, 0.48), (0.35, 0.68), (0.46, 0.48)], mix(first, second, 0.5))


def balloon(pen: Pen, dice: Dice, setting: Setting) -> None:
    first, second = vary(dice, dice.pick(PAINTS)), dice.pick((WHITE, vary(dice, dice.pick(PAINTS))))
    cx, cy, rx, ry = 0.36, 0.35, 0.35, 0.34
    for x in (0.27, 0.45):
        pen.line([(x, 0.7), (0.36 + (x - 0.36) * 0.7, 0.86)], 0.014, INK)
    skirt = [(cx - 0.1, 0.76), (cx + 0.1, 0.76)]
    pen.shape([*bow(cx, cy, rx, ry, 150, 390, 24), *reversed(skirt)], first)
    stripes = dice.pick((3, 5))
    for i in range(1, stripes + 1, 2):  # each stripe is a slice between two meridians
        outer, inner = rx * (1 - 2 * i / (stripes + 2)), rx * (1 - 2 * (i + 1) / (stripes + 2))
        left, right = bow(cx, cy, outer, ry, -90, 30, 12), bow(cx, cy, inner, ry, 30, -90, 12)
        pen.shape([*left, (cx + 0.1 * outer / rx, 0.76), (cx + 0.1 * inner / rx, 0.76), *right], second)
    if dice.chance(0.4):
        band = shade(second, 0.8)
        pen.shape([*bow(cx, cy, rx, 0.07, 0, 180), *bow(cx, cy + 0.05, rx * 0.99, 0.07, 180, 0)], band)
    pen.shape([(0.27, 0.84), (0.45, 0.84), (0.43, 0.99), (0.29, 0.99)], (150, 104, 62))
    pen.line([(0.26, 0.85), (0.46, 0.85)], 0.03, (104, 70, 44))

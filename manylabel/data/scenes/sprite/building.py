"""What is built: house, lighthouse, lamp."""

from __future__ import annotations

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import INK, PAINTS, WHITE, Colour, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen, bow

WALLS: tuple[Colour, ...] = (
    (240, 224, 196),
    (226, 176, 142),
    (206, 214, 214),
    (232, 206, 130),
    (190, 104, 84),
    (166, 194, 200),
)
ROOFS: tuple[Colour, ...] = ((178, 74, 58), (112, 72, 62), (84, 92, 112), (206, 116, 66), (70, 106, 100))
LIT: Colour = (255, 220, 130)


def house(pen: Pen, dice: Dice, setting: Setting) -> None:
    wall, roof, door = vary(dice, dice.pick(WALLS)), vary(dice, dice.pick(ROOFS)), vary(dice, dice.pick(PAINTS))
    dark = setting.time != "day"
    dice.pick((_cottage, _gable, _tall))(pen, dice, wall, roof, door, dark)


def _window(pen: Pen, dice: Dice, x: float, y: float, w: float, h: float, dark: bool) -> None:
    lit = dark and dice.chance(0.7)
    pen.block(x - 0.014, y - 0.014, x + w + 0.014, y + h + 0.014, WHITE)
    pen.block(x, y, x + w, y + h, LIT if lit else (110, 150, 176), glow=lit)
    pen.line([(x + w / 2, y), (x + w / 2, y + h)], 0.012, WHITE)


def _cottage(pen: Pen, dice: Dice, wall: Colour, roof: Colour, door: Colour, dark: bool) -> None:
    eaves = dice.uniform(0.4, 0.5)
    pen.block(0.68, 0.08, 0.8, eaves - 0.05, shade(wall, 0.7))
    pen.block(0.09, eaves, 0.91, 0.94, wall)
    pen.block(0.09, 0.88, 0.91, 0.94, shade(wall, 0.82))
    pen.shape([(0.01, eaves + 0.04), (0.16, 0.12), (0.84, 0.12), (0.99, eaves + 0.04)], roof)
    pen.line([(0.02, eaves + 0.03), (0.98, eaves + 0.03)], 0.022, shade(roof, 0.75))
    pen.block(0.43, 0.6, 0.57, 0.94, door)
    pen.disc(0.54, 0.77, 0.014, LIT)
    for x in (0.17, 0.67):
        _window(pen, dice, x, 0.6, 0.16, 0.17, dark)


def _gable(pen: Pen, dice: Dice, wall: Colour, roof: Colour, door: Colour, dark: bool) -> None:
    peak = dice.uniform(0.02, 0.1)
    pen.block(0.7, 0.1, 0.8, 0.4, shade(roof, 0.7))
    pen.shape([(0.12, 0.46), (0.5, peak + 0.03), (0.88, 0.46), (0.88, 0.94), (0.12, 0.94)], wall)
    pen.shape([(0.5, peak), (0.99, 0.48), (0.92, 0.54), (0.5, peak + 0.12), (0.08, 0.54), (0.01, 0.48)], roof)
    pen.shape([*bow(0.5, 0.68, 0.1, 0.1, 180, 360), (0.6, 0.94), (0.4, 0.94)], door)
    pen.disc(0.5, 0.35, 0.075, WHITE)
    pen.disc(0.5, 0.35, 0.056, LIT if dark else (110, 150, 176), glow=dark)
    for x in (0.19, 0.67):
        _window(pen, dice, x, 0.62, 0.14, 0.16, dark)


def _tall(pen: Pen, dice: Dice, wall: Colour, roof: Colour, door: Colour, dark: bool) -> None:
    pen.block(0.58, 0.02, 0.66, 0.2, shade(wall, 0.65))
    pen.block(0.24, 0.27, 0.76, 0.94, wall)
    pen.shape([(0.18, 0.3), (0.5, 0.05), (0.82, 0.3)], roof)
    pen.block(0.76, 0.56, 0.98, 0.94, shade(wall, 0.86))
    pen.shape([(0.74, 0.58), (0.8, 0.48), (0.99, 0.58)], shade(roof, 0.88))
    pen.block(0.44, 0.74, 0.56, 0.94, door)
    for y in (0.36, 0.55):
        for x in (0.31, 0.57):
            _window(pen, dice, x, y, 0.12, 0.11, dark)
    _window(pen, dice, 0.83, 0.68, 0.09, 0.1, dark)


def lighthouse(pen: Pen, dice: Dice, setting: Setting) -> None:
    band, dark = vary(dice, dice.pick(((208, 62, 56), (54, 84, 142), (60, 62, 74)))), setting.time != "day"
    pen.shape([(0.0, 0.99), (0.05, 0.89), (0.16, 0.84), (0.32, 0.85), (0.41, 0.9), (0.45, 0.99)], (112, 106, 104))
    pen.shape([(0.0, 0.99), (0.05, 0.89), (0.14, 0.93), (0.2, 0.99)], (136, 130, 126))
    top, bottom, rings = 0.2, 0.88, dice.pick((5, 7))
    for i in range(rings):
        a, b = i / rings, (i + 1) / rings
        y, y2, half, half2 = top + (bottom - top) * a, top + (bottom - top) * b, 0.085 + 0.06 * a, 0.085 + 0.06 * b
        colour = WHITE if i % 2 else band
        pen.shape([(0.225 - half, y), (0.225 + half, y), (0.225 + half2, y2), (0.225 - half2, y2)], colour)
        pen.shape(
            [(0.225 + half * 0.4, y), (0.225 + half, y), (0.225 + half2, y2), (0.225 + half2 * 0.4, y2)],
            shade(colour, 0.86),
        )
    pen.block(0.1, 0.18, 0.35, 0.21, INK)
    pen.block(0.155, 0.085, 0.295, 0.18, LIT if dark else (190, 214, 220), glow=dark)
    pen.line([(0.225, 0.085), (0.225, 0.18)], 0.014, INK)
    pen.shape([(0.12, 0.09), (0.225, 0.01), (0.33, 0.09)], band)
    pen.block(0.2, 0.78, 0.25, 0.87, INK)


def lamp(pen: Pen, dice: Dice, setting: Setting) -> None:
    iron, dark = vary(dice, dice.pick((INK, (66, 84, 88), (110, 112, 120))), 10), setting.time != "day"
    glass = LIT if dark else (226, 226, 210)
    pen.block(0.115, 0.93, 0.235, 0.99, iron)
    pen.block(0.15, 0.2, 0.2, 0.95, iron)
    style = dice.pick(("lantern", "arm", "globes"))
    if style == "lantern":
        pen.shape([(0.08, 0.09), (0.27, 0.09), (0.235, 0.25), (0.115, 0.25)], glass, glow=dark)
        pen.shape([(0.05, 0.1), (0.175, 0.01), (0.3, 0.1)], iron)
        pen.block(0.1, 0.24, 0.25, 0.27, iron)
        pen.line([(0.175, 0.09), (0.175, 0.25)], 0.014, iron)
    elif style == "arm":
        pen.line(bow(0.225, 0.2, 0.06, 0.15, 180, 290), 0.045, iron)
        pen.shape([(0.2, 0.05), (0.345, 0.1), (0.33, 0.14), (0.2, 0.12)], iron)
        pen.oval(0.275, 0.125, 0.06, 0.028, glass, glow=dark, turn=12)
        pen.disc(0.175, 0.2, 0.03, iron)
    else:
        pen.line([(0.07, 0.24), (0.28, 0.24)], 0.035, iron)
        for x, y in ((0.08, 0.16), (0.27, 0.16), (0.175, 0.09)):
            pen.disc(x, y, 0.078, glass, glow=dark)

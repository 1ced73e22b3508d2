"""What carries people: car, boat."""

from __future__ import annotations

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import INK, PAINTS, WHITE, WOOD, Colour, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen, bow

GLASS: Colour = (150, 196, 214)


def car(pen: Pen, dice: Dice, setting: Setting) -> None:
    paint = vary(dice, dice.pick(PAINTS))
    dice.pick((_saloon, _saloon, _van, _pickup))(pen, paint, dice)
    for x in (0.24, 0.77):
        pen.disc(x, 0.405, 0.093, INK)
        pen.disc(x, 0.405, 0.045, (170, 172, 178))
    dark = setting.time != "day"
    pen.oval(0.955, 0.29, 0.025, 0.03, (255, 236, 160), glow=dark)
    pen.block(0.02, 0.26, 0.045, 0.31, (220, 60, 52), glow=dark)


def _saloon(pen: Pen, paint: Colour, dice: Dice) -> None:
    roof = dice.uniform(0.03, 0.08)
    pen.shape([(0.17, 0.22), (0.3, roof), (0.58, roof), (0.74, 0.22)], paint)
    pen.shape([(0.22, 0.21), (0.32, roof + 0.03), (0.44, roof + 0.03), (0.44, 0.21)], GLASS)
    pen.shape([(0.47, 0.21), (0.47, roof + 0.03), (0.56, roof + 0.03), (0.68, 0.21)], GLASS)
    pen.shape([(0.02, 0.24), (0.1, 0.2), (0.76, 0.2), (0.94, 0.25), (0.985, 0.32), (0.985, 0.4), (0.015, 0.4)], paint)
    pen.shape([(0.015, 0.34), (0.985, 0.34), (0.985, 0.41), (0.015, 0.41)], shade(paint, 0.78))
    pen.line([(0.46, 0.22), (0.46, 0.38)], 0.01, shade(paint, 0.65))


def _van(pen: Pen, paint: Colour, dice: Dice) -> None:
    pen.shape([(0.02, 0.03), (0.8, 0.03), (0.94, 0.2), (0.985, 0.26), (0.985, 0.41), (0.015, 0.41)], paint)
    pen.block(0.015, 0.3, 0.985, 0.41, shade(paint, 0.8))
    pen.block(0.02, 0.22, 0.93, 0.25, WHITE)
    for x in (0.07, 0.26, 0.45):
        pen.block(x, 0.08, x + 0.15, 0.2, GLASS)
    pen.shape([(0.65, 0.08), (0.77, 0.08), (0.87, 0.2), (0.65, 0.2)], GLASS)


def _pickup(pen: Pen, paint: Colour, dice: Dice) -> None:
    pen.shape([(0.42, 0.22), (0.46, 0.04), (0.66, 0.04), (0.76, 0.22)], paint)
    pen.shape([(0.48, 0.2), (0.505, 0.075), (0.63, 0.075), (0.7, 0.2)], GLASS)
    if dice.chance(0.6):
        for x in (0.1, 0.2, 0.3):
            pen.disc(x, 0.19, 0.07, shade(WOOD, 1.1 + x))
    pen.shape([(0.015, 0.2), (0.78, 0.2), (0.95, 0.24), (0.985, 0.3), (0.985, 0.41), (0.015, 0.41)], paint)
    pen.block(0.015, 0.34, 0.985, 0.41, shade(paint, 0.78))
    pen.line([(0.42, 0.21), (0.42, 0.4)], 0.012, shade(paint, 0.65))


def boat(pen: Pen, dice: Dice, setting: Setting) -> None:
    hull, sail = vary(dice, dice.pick((*PAINTS, WOOD))), dice.pick((WHITE, WHITE, vary(dice, dice.pick(PAINTS))))
    dice.pick((_sailing, _sailing, _steaming, _fishing))(pen, dice, hull, sail)
    foam = [(0.04, 0.89), *((0.04 + 0.115 * i, 0.855 if i % 2 else 0.875) for i in range(9)), (0.96, 0.89)]
    pen.shape(foam, (226, 238, 244))


def _hull(pen: Pen, colour: Colour, top: float, bow_rise: float) -> None:
    pen.shape([(0.02, top), (0.98, top - bow_rise), (0.86, 0.88), (0.14, 0.88)], colour)
    pen.shape([(0.08, 0.8), (0.91, 0.8), (0.86, 0.88), (0.14, 0.88)], shade(colour, 0.75))
    pen.line([(0.025, top + 0.012), (0.975, top + 0.012 - bow_rise)], 0.026, WHITE)


def _sailing(pen: Pen, dice: Dice, hull: Colour, sail: Colour) -> None:
    top = dice.uniform(0.01, 0.12)
    pen.line([(0.48, top), (0.48, 0.7)], 0.026, WOOD)
    pen.shape([(0.45, top + 0.04), (0.45, 0.62), (0.1, 0.62)], sail)
    pen.shape([(0.45, top + 0.3), (0.45, 0.62), (0.1, 0.62)], shade(sail, 0.9))
    pen.shape([(0.51, top + 0.09), (0.51, 0.62), (0.84, 0.62)], shade(sail, 0.94))
    pen.shape([(0.48, top), (0.48, top + 0.06), (0.6, top + 0.03)], (214, 68, 62))
    _hull(pen, hull, 0.67, 0.0)


def _steaming(pen: Pen, dice: Dice, hull: Colour, sail: Colour) -> None:
    for x in (0.34, 0.52):
        pen.block(x, 0.22, x + 0.12, 0.45, (206, 70, 60))
        pen.block(x, 0.22, x + 0.12, 0.28, INK)
    pen.block(0.2, 0.4, 0.76, 0.64, WHITE)
    for i in range(5):
        pen.disc(0.27 + 0.105 * i, 0.5, 0.032, (94, 130, 150))
    pen.line([(0.84, 0.3), (0.84, 0.6)], 0.02, WOOD)
    _hull(pen, hull, 0.62, 0.06)


def _fishing(pen: Pen, dice: Dice, hull: Colour, sail: Colour) -> None:
    pen.line([(0.36, 0.1), (0.36, 0.64)], 0.026, WOOD)
    pen.line([(0.36, 0.14), (0.08, 0.6)], 0.012, INK)
    pen.block(0.48, 0.36, 0.76, 0.66, sail)
    pen.block(0.44, 0.32, 0.8, 0.38, shade(hull, 0.9))
    pen.block(0.54, 0.44, 0.7, 0.54, (94, 130, 150))
    pen.oval(0.2, 0.62, 0.11, 0.06, (216, 168, 90))
    _hull(pen, hull, 0.64, 0.04)
    pen.line(bow(0.3, 0.74, 0.05, 0.05, 0, 360), 0.02, WHITE)

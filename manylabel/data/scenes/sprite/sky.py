"""What is seen in the sky and was not made by anyone: sun, moon, cloud, bird."""

from __future__ import annotations

import math

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.colour import INK, WHITE, Colour, mix, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen, bow


def sun(pen: Pen, dice: Dice, setting: Setting) -> None:
    colour: Colour = dice.pick(((255, 214, 78), (255, 196, 54), (255, 228, 120)))
    if setting.time == "dusk":
        colour = dice.pick(((255, 150, 66), (255, 120, 70), (255, 182, 84)))
    colour, rays, start = vary(dice, colour, 12), dice.count(8, 13), dice.uniform(0, 360)
    style = dice.pick(("rays", "strokes", "disc", "disc"))
    radius = {"rays": 0.30, "strokes": 0.31, "disc": 0.49}[style]
    for i in range(rays if style != "disc" else 0):
        angle, half = math.radians(start + 360 * i / rays), math.pi / rays * 0.62
        tip, foot = (0.49 if i % 2 else 0.45), 0.33
        point = (0.5 + tip * math.cos(angle), 0.5 + tip * math.sin(angle))
        if style == "rays":
            feet = [(0.5 + foot * math.cos(angle + s), 0.5 + foot * math.sin(angle + s)) for s in (-half, half)]
            pen.shape([point, *feet], shade(colour, 0.97), glow=True)
        else:
            pen.line([(0.5 + 0.36 * math.cos(angle), 0.5 + 0.36 * math.sin(angle)), point], 0.04, colour, glow=True)
    pen.disc(0.5, 0.5, radius, colour, glow=True)
    pen.disc(0.5, 0.5, radius * 0.8, mix(colour, WHITE, 0.25), glow=True)
    if style == "rays" and dice.chance(0.4):
        face = shade(colour, 0.62)
        pen.disc(0.41, 0.46, 0.028, face, glow=True)
        pen.disc(0.59, 0.46, 0.028, face, glow=True)
        pen.line(bow(0.5, 0.51, 0.1, 0.09, 20, 160), 0.028, face, glow=True)


def moon(pen: Pen, dice: Dice, setting: Setting) -> None:
    colour = vary(dice, dice.pick(((250, 240, 200), (240, 240, 232), (252, 226, 168))), 10)
    if dice.chance(0.55):
        tilt, bite = dice.uniform(-50, 50), dice.uniform(0.1, 0.3)
        outer = bow(0.0, 0.0, 0.49, 0.49, -90, 90, 22)
        inner = bow(0.0, 0.0, bite, 0.49, 90, -90, 22)
        cos, sin = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
        points = [(x - 0.22, y) for x, y in outer + inner]
        pen.shape([(0.5 + x * cos - y * sin, 0.5 + x * sin + y * cos) for x, y in points], colour, glow=True)
        return
    pen.disc(0.5, 0.5, 0.49, colour, glow=True)
    for _ in range(dice.count(3, 6)):
        angle, away, r = dice.uniform(0, 6.28), dice.uniform(0.05, 0.32), dice.uniform(0.03, 0.1)
        pen.disc(0.5 + away * math.cos(angle), 0.5 + away * math.sin(angle), r, shade(colour, 0.9), glow=True)


def cloud(pen: Pen, dice: Dice, setting: Setting) -> None:
    colour: Colour = dice.pick((WHITE, (236, 240, 246), (226, 232, 240)))
    if setting.rain:
        colour = dice.pick(((150, 156, 168), (176, 180, 190), (128, 134, 148)))
    elif setting.time == "dusk":
        colour = dice.pick(((255, 206, 190), (246, 186, 176), (226, 190, 206)))
    puffs, peak = dice.count(3, 5), dice.uniform(0.35, 0.65)
    rounds = []
    for i in range(puffs):
        x = 0.13 + 0.74 * i / (puffs - 1)
        r = max(0.11, (0.25 - 0.3 * abs(x - peak)) * dice.uniform(0.9, 1.1))
        rounds.append((min(max(x, r + 0.01), 0.99 - r), max(r + 0.01, 0.53 - r - dice.uniform(0.0, 0.3) * r), r))
    for tone, lift, scale in ((shade(colour, 0.86), 0.0, 1.0), (colour, 0.022, 0.94)):
        for x, y, r in rounds:
            pen.disc(x, y - lift * 0.6, r * scale, tone)
        pen.shape([(0.13, 0.38), (0.87, 0.38), (0.87, 0.54 - lift * 1.6), (0.13, 0.54 - lift * 1.6)], tone)
        for x in (0.13, 0.87):
            pen.disc(x, 0.43 - lift, 0.11 * scale, tone)


def bird(pen: Pen, dice: Dice, setting: Setting) -> None:
    colour = vary(
        dice, dice.pick(((52, 54, 68), (238, 238, 236), (84, 120, 176), (196, 84, 66), (120, 96, 80), (228, 178, 70)))
    )
    dice.pick((_gliding, _flapping, _flapping, _far))(pen, dice, colour)


def _gliding(pen: Pen, dice: Dice, colour: Colour) -> None:
    lift = dice.uniform(0.0, 0.16)
    for side in (-1, 1):
        wing = [
            (0.5, 0.3),
            (0.5 + side * 0.26, 0.2 - lift),
            (0.5 + side * 0.49, 0.3),
            (0.5 + side * 0.25, 0.34),
            (0.5, 0.46),
        ]
        pen.shape(wing, shade(colour, 0.86 if side > 0 else 1.0))
    pen.oval(0.5, 0.4, 0.07, 0.19, colour)
    pen.shape([(0.5, 0.5), (0.4, 0.68), (0.6, 0.68)], shade(colour, 0.9))
    pen.disc(0.5, 0.23, 0.065, colour)
    pen.shape([(0.46, 0.19), (0.54, 0.19), (0.5, 0.1)], (240, 170, 60))


def _flapping(pen: Pen, dice: Dice, colour: Colour) -> None:
    up = dice.chance(0.6)
    pen.shape([(0.3, 0.4), (0.02, 0.36), (0.04, 0.5), (0.3, 0.5)], shade(colour, 0.85))
    pen.oval(0.48, 0.43, 0.27, 0.13, colour, turn=-6)
    pen.oval(0.5, 0.48, 0.2, 0.07, mix(colour, WHITE, 0.45), turn=-6)
    pen.disc(0.75, 0.34, 0.105, colour)
    pen.shape([(0.83, 0.3), (0.98, 0.36), (0.83, 0.39)], (240, 166, 56))
    pen.disc(0.78, 0.32, 0.022, INK)
    tip = (0.28, 0.02) if up else (0.2, 0.68)
    pen.shape([(0.36, 0.38), tip, (tip[0] + 0.18, 0.1 if up else 0.62), (0.62, 0.4)], shade(colour, 0.72))


def _far(pen: Pen, dice: Dice, colour: Colour) -> None:
    """The two bows of a gull seen from afar."""
    dark, dip = shade(colour, 0.8), dice.uniform(0.3, 0.42)
    for side in (-1, 1):
        upper, lower = (
            bow(0.25, dip, 0.25, dip - 0.08, 180, 350, 10),
            bow(0.25, dip + 0.1, 0.25, dip - 0.1, 350, 180, 10),
        )
        pen.shape([(0.5 + side * x, y) for x, y in (*upper, *lower, (0.0, dip + 0.24))], dark)

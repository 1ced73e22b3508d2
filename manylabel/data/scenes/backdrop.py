"""Everything without a label of its own: sky, land, water, and the clutter that lies about."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw

from manylabel.data.scenes.catalogue import Setting
from manylabel.data.scenes.clutter import scatter
from manylabel.data.scenes.colour import Colour, Light, mix, shade, vary
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.layout import Ground
from manylabel.data.scenes.pen import Pen, Point

FINER = 2  # drawn at twice the size, for smooth edges

# Colours at the top of the sky and at the horizon.
SKIES: dict[str, tuple[tuple[Colour, Colour], ...]] = {
    "day": (((86, 158, 220), (206, 232, 242)), ((122, 188, 226), (244, 240, 222)), ((98, 176, 206), (222, 240, 228))),
    "dusk": (((84, 74, 138), (250, 160, 118)), ((128, 88, 150), (255, 200, 136)), ((66, 92, 142), (244, 170, 150))),
    "night": (((14, 20, 52), (48, 64, 112)), ((24, 18, 56), (72, 58, 112)), ((10, 26, 46), (42, 78, 100))),
    "rain": (((112, 128, 144), (186, 194, 196)), ((132, 140, 150), (204, 206, 202))),
}
AMBIENT = {"day": (1.0, 1.0, 1.0), "dusk": (0.96, 0.80, 0.78), "night": (0.50, 0.54, 0.74)}

LAND: dict[str, tuple[Colour, ...]] = {
    "meadow": ((128, 180, 92), (150, 184, 84), (108, 166, 104), (178, 184, 96)),
    "sea": ((232, 212, 162), (222, 194, 146), (238, 224, 190)),
    "desert": ((228, 186, 122), (216, 158, 104), (234, 206, 150), (204, 140, 104)),
    "town": ((176, 176, 172), (196, 184, 166), (160, 168, 176)),
}
WATERS: tuple[Colour, ...] = ((64, 142, 178), (72, 164, 172), (58, 116, 168), (94, 168, 186))


def sky_and_light(setting: Setting, dice: Dice) -> tuple[tuple[Colour, Colour], Light]:
    """The sky's two colours, and the light under it."""
    top, low = dice.pick(SKIES["rain" if setting.rain and setting.time == "day" else setting.time])
    top, low = vary(dice, top, 14), vary(dice, low, 10)
    if setting.rain and setting.time != "day":
        top, low = mix(top, (92, 96, 108), 0.45), mix(low, (112, 114, 126), 0.45)
    strength = dice.uniform(0.92, 1.04) * (0.86 if setting.rain else 1.0)
    r, g, b = AMBIENT[setting.time]
    return (top, low), Light((r * strength, g * strength, b * strength), mix(top, low, 0.8))


def draw_sky(setting: Setting, ground: Ground, sky: tuple[Colour, Colour], dice: Dice, size: int) -> Image.Image:
    """The empty sky, at FINER times the size."""
    image = _gradient(sky, ground, size * FINER)
    if setting.time == "night":
        _stars(ImageDraw.Draw(image), dice, ground, image.width)
    return image


def draw_land(image: Image.Image, setting: Setting, ground: Ground, light: Light, dice: Dice) -> None:
    """Land and water under the sky, with their clutter."""
    draw, side = ImageDraw.Draw(image), image.width
    pen = Pen(draw, (0, 0, side, side), light)
    _far_land(Pen(draw, (0, 0, side, side), light.at(dice.uniform(0.35, 0.6))), setting, ground, dice)
    land = vary(dice, dice.pick(LAND[setting.terrain]), 12)
    if setting.terrain == "sea":
        _water(pen, ground, dice, light)
    _near_land(pen, setting, ground, land, dice)
    scatter(draw, side, setting, ground, land, light, dice)


def _gradient(sky: tuple[Colour, Colour], ground: Ground, side: int) -> Image.Image:
    share = np.clip(np.linspace(0, 1 / (ground.horizon + 0.05), side), 0, 1)[:, None]  # [side, 1]
    column = np.asarray(sky[0]) * (1 - share) + np.asarray(sky[1]) * share  # [side, 3]
    return Image.fromarray(column.astype(np.uint8)[:, None, :]).resize((side, side), Image.Resampling.NEAREST)


def _stars(draw: ImageDraw.ImageDraw, dice: Dice, ground: Ground, side: int) -> None:
    for _ in range(dice.count(12, 40)):
        bright, r = dice.count(150, 245), dice.uniform(0.0015, 0.0045) * side
        x, y = dice.roll() * side, dice.uniform(0, ground.horizon) * side
        draw.ellipse((x - r, y - r, x + r, y + r), fill=(bright, bright, 225))


def ridge(dice: Dice, base: float, swell: float, waves: float) -> list[Point]:
    """A rolling line from the left edge to the right, around the height `base`."""
    a, b, c = dice.uniform(0, 6.28), dice.uniform(0, 6.28), dice.uniform(0.4, 1.0)
    steps = 24
    return [
        (
            t / steps,
            base
            - swell
            * (0.6 * math.sin(a + waves * t / steps * 6.28) + 0.4 * c * math.sin(b + 2.3 * waves * t / steps * 6.28)),
        )
        for t in range(steps + 1)
    ]


def _down_to_edge(line: list[Point]) -> list[Point]:
    return [*line, (1.0, 1.0), (0.0, 1.0)]


def _far_land(hazy: Pen, setting: Setting, ground: Ground, dice: Dice) -> None:
    """What closes the view at the horizon."""
    h = ground.horizon
    if setting.terrain == "town":
        _skyline(hazy, dice, h, lit=setting.time != "day")
    elif setting.terrain == "desert" and dice.chance(0.6):
        for _ in range(dice.count(1, 3)):
            x, w, top = dice.uniform(-0.1, 0.9), dice.uniform(0.1, 0.3), h - dice.uniform(0.04, 0.16)
            hazy.shape([(x, h + 0.03), (x + 0.2 * w, top), (x + 0.8 * w, top), (x + w, h + 0.03)], (190, 112, 84))
    elif setting.terrain == "sea":
        if dice.chance(0.5):
            x, w = dice.uniform(-0.2, 0.8), dice.uniform(0.2, 0.5)
            hazy.oval(x + w / 2, h + 0.01, w / 2, dice.uniform(0.02, 0.07), (98, 128, 116))
    else:
        far: Colour = (108, 134, 140) if dice.chance(0.5) else (120, 156, 110)
        if dice.chance(0.45):
            for i in range(dice.count(3, 5)):
                x, w, top = dice.uniform(-0.1, 1.0), dice.uniform(0.15, 0.3), h - dice.uniform(0.05, 0.2)
                hazy.shape([(x - w, h + 0.05), (x, top), (x + w, h + 0.05)], shade(far, 0.92 + 0.05 * i))
        else:
            hazy.shape(_down_to_edge(ridge(dice, h - 0.03, 0.05, dice.uniform(0.6, 1.4))), far)


def _skyline(pen: Pen, dice: Dice, horizon: float, lit: bool) -> None:
    x = -0.05
    while x < 1.0:
        w, top = dice.uniform(0.06, 0.16), horizon - dice.uniform(0.05, 0.3)
        wall = vary(dice, (138, 140, 152), 22)
        pen.block(x, top, x + w, horizon + 0.03, wall)
        for row in range(int((horizon - top) / 0.035)):
            for column in range(int(w / 0.03)):
                if dice.chance(0.45):
                    u, v = x + 0.012 + column * 0.03, top + 0.012 + row * 0.035
                    pen.block(u, v, u + 0.013, v + 0.017, (250, 214, 130) if lit else shade(wall, 0.8), glow=False)
        x += w + (dice.uniform(0.0, 0.05) if dice.chance(0.4) else 0.0)


def _water(pen: Pen, ground: Ground, dice: Dice, light: Light) -> None:
    water = vary(dice, dice.pick(WATERS), 14)
    pen.block(0.0, ground.horizon, 1.0, 1.0, mix(water, light.haze, 0.3))
    bands = 5
    for i in range(1, bands):
        y = ground.horizon + (ground.shore - ground.horizon) * (i / bands) ** 1.5
        pen.shape(_down_to_edge(ridge(dice, y, 0.006, 3.0)), mix(water, light.haze, 0.3 * (1 - i / bands)))
    for _ in range(dice.count(25, 60)):
        depth = dice.roll()
        x, y, w = (
            dice.roll(),
            ground.horizon + 0.01 + depth * (ground.shore - ground.horizon),
            0.01 + 0.04 * depth * dice.roll(),
        )
        colour = shade(water, dice.pick((0.86, 1.14, 1.3)))
        pen.line([(x - w, y), (x - w / 2, y - 0.15 * w), (x, y), (x + w / 2, y - 0.15 * w), (x + w, y)], 0.0035, colour)


def _near_land(pen: Pen, setting: Setting, ground: Ground, land: Colour, dice: Dice) -> None:
    if setting.terrain == "sea":
        coast = ridge(dice, ground.shore, 0.012, dice.uniform(0.8, 1.6))
        pen.shape(_down_to_edge([(x, y - 0.014) for x, y in coast]), (236, 244, 244))
        pen.shape(_down_to_edge(coast), shade(land, 0.86))
        pen.shape(_down_to_edge([(x, y + 0.02) for x, y in coast]), land)
    elif setting.terrain == "town":
        pen.block(0.0, ground.horizon, 1.0, 1.0, land)
        kerb, wide = dice.uniform(ground.horizon + 0.12, 0.78), dice.uniform(0.12, 0.2)
        pen.block(0.0, kerb, 1.0, kerb + wide, (104, 106, 112))
        pen.block(0.0, kerb - 0.012, 1.0, kerb, shade(land, 1.14))
        start = dice.uniform(0, 0.12)
        for i in range(8):
            pen.block(
                start + 0.14 * i - 0.1,
                kerb + wide / 2 - 0.005,
                start + 0.14 * i - 0.03,
                kerb + wide / 2 + 0.005,
                (226, 222, 206),
            )
        for _ in range(dice.count(5, 9)):
            x = dice.uniform(-0.1, 1.1)
            pen.line([(x, ground.horizon), (0.5 + (x - 0.5) * 1.5, kerb - 0.012)], 0.003, shade(land, 0.9))
    else:
        layers = dice.count(2, 3)
        for i in range(layers):
            base = ground.horizon + (0.9 - ground.horizon) * i / layers
            swell = 0.016 if i == 0 else 0.04
            colour = shade(land, 1.0 + (0.1 if setting.terrain == "desert" else -0.07) * (layers - 1 - i) * (-1) ** i)
            pen.shape(_down_to_edge(ridge(dice, base, swell, dice.uniform(0.5, 1.3))), vary(dice, colour, 8))

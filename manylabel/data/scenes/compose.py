"""From a plan to pixels: backdrop, shadows, sprites from far to near, rain, and the camera's faults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from manylabel.data.scenes.backdrop import FINER, draw_land, draw_sky, sky_and_light
from manylabel.data.scenes.catalogue import KINDS
from manylabel.data.scenes.colour import Light
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.layout import Plan, Thing
from manylabel.data.scenes.sprite import draw_sprite

SOLID = 96  # alpha from which a pixel belongs to an object


@dataclass(frozen=True)
class Patch:
    """A drawn object and its place in the picture."""

    label: str
    picture: Image.Image  # RGBA
    left: int
    top: int

    def outline(self, size: int) -> np.ndarray:
        """All pixels of the object, also those that others will hide. [size, size] bool"""
        alpha = np.asarray(self.picture.getchannel("A"))
        solid = alpha >= min(SOLID, int(alpha.max()))  # thin things in small pictures are never solid
        whole = np.zeros((size, size), bool)
        whole[self.top : self.top + solid.shape[0], self.left : self.left + solid.shape[1]] = solid
        return whole


def paint(plan: Plan, seed: int, index: int, size: int) -> tuple[np.ndarray, list[Patch]]:
    """The picture, and its objects from far to near."""
    dice = Dice("paint", seed, index)
    sky, light = sky_and_light(plan.setting, dice)
    canvas = draw_sky(plan.setting, plan.ground, sky, dice, size)
    glaze = ImageDraw.Draw(canvas, "RGBA")  # lets the canvas shine through
    _halos(glaze, plan, canvas.width, ("sun", "moon"))
    draw_land(canvas, plan.setting, plan.ground, light, dice)
    if plan.setting.time != "day":
        _halos(glaze, plan, canvas.width, ("lamp",))
    _shadows(glaze, plan, canvas.width)
    _strings(glaze, plan, canvas.width)
    image = canvas.reduce(FINER)
    patches = list(_patches(plan, light, seed, index, size))
    for patch in patches:
        image.paste(patch.picture, (patch.left, patch.top), patch.picture)
    if plan.setting.rain:
        _rain(image, dice, size)
    return _photograph(image, dice), patches


def _patches(plan: Plan, light: Light, seed: int, index: int, size: int) -> Iterator[Patch]:
    for thing in plan.things:
        width, height = max(1, round(thing.width * size)), max(1, round(thing.height * size))
        left = min(max(0, round(thing.left * size)), size - width)
        top = min(max(0, round(thing.top * size)), size - height)
        dice = Dice("look", seed, index, thing.number)
        lit = light.at(_distance(thing, plan) * dice.uniform(0.1, 0.45))
        yield Patch(thing.label, draw_sprite(thing.label, dice, plan.setting, lit, width, height), left, top)


def _distance(thing: Thing, plan: Plan) -> float:
    """0 at the lower edge of the picture, 1 at the horizon and in the sky."""
    return min(1.0, max(0.0, (1.0 - thing.bottom) / (1.0 - plan.ground.horizon)))


def _halos(draw: ImageDraw.ImageDraw, plan: Plan, side: int, labels: tuple[str, ...]) -> None:
    """The air shines around what gives light."""
    for thing in plan.things:
        if thing.label in labels:
            x, radius = (thing.left + thing.width / 2) * side, 0.5 * thing.width * side
            y = (thing.top + min(thing.width, thing.height) / 2) * side  # a lamp's light is at its top
            for reach in (1.25, 1.5, 1.9, 2.4):
                r = radius * reach
                draw.ellipse((x - r, y - r, x + r, y + r), fill=(255, 238, 196, 20))


def _shadows(draw: ImageDraw.ImageDraw, plan: Plan, side: int) -> None:
    strength = {"day": 60, "dusk": 50, "night": 40}[plan.setting.time]
    for thing in plan.things:
        if KINDS[thing.label].layer == "ground":
            left, right, foot, thick = (
                thing.left * side,
                thing.right * side,
                thing.bottom * side,
                0.07 * thing.width * side,
            )
            draw.ellipse((left, foot - thick, right, foot + 0.8 * thick), fill=(20, 24, 44, strength))


def _strings(draw: ImageDraw.ImageDraw, plan: Plan, side: int) -> None:
    """Each kite hangs on a string that somebody holds."""
    holder = next((thing for thing in plan.things if thing.label == "person"), None)
    for kite in plan.things:
        if kite.label == "kite" and holder is not None:
            x, y = (kite.left + kite.width / 2) * side, (kite.top + kite.height * 0.4) * side
            u, v = (holder.left + holder.width / 2) * side, (holder.top + holder.height * 0.4) * side
            sag = [
                (x + (u - x) * t / 8, y + (v - y) * t / 8 + 0.03 * side * math.sin(math.pi * t / 8)) for t in range(9)
            ]
            draw.line(sag, fill=(60, 56, 64, 90), width=max(1, side // 400))


def _rain(image: Image.Image, dice: Dice, size: int) -> None:
    draw = ImageDraw.Draw(image, "RGBA")
    slant, long = dice.uniform(-0.4, 0.4), dice.uniform(0.02, 0.06)
    fill = (214, 224, 238, dice.count(60, 130))
    for _ in range(dice.count(60, 190)):
        x, y, reach = (
            dice.uniform(-0.1, 1.1) * size,
            dice.uniform(-0.05, 1.0) * size,
            long * dice.uniform(0.5, 1.3) * size,
        )
        draw.line((x, y, x + slant * reach, y + reach), fill=fill, width=max(1, size // 256))


def _photograph(image: Image.Image, dice: Dice) -> np.ndarray:
    """Uneven light, a colour cast and grain, as a cheap camera adds them. [size, size, 3] uint8"""
    size = image.width
    spots = np.array([[dice.uniform(234, 255) for _ in range(4)] for _ in range(4)], np.uint8)
    light = Image.fromarray(spots).resize((size, size), Image.Resampling.BICUBIC)
    cast = [dice.uniform(0.93, 1.0) for _ in range(3)]
    tinted = Image.merge("RGB", [light.point([int(level * share) for level in range(256)]) for share in cast])
    bits = np.random.PCG64(int(dice.roll() * 2**53)).random_raw(-(-size * size * 3 // 8)).astype("<u8", copy=False)
    noise = Image.frombuffer("RGB", (size, size), bits.tobytes()[: size * size * 3], "raw", "RGB", 0, 1)
    strength = dice.log_uniform(2, 14) / 128
    grain = noise.point([round(128 + (level - 127.5) * strength) for level in range(256)] * 3)
    return np.array(ImageChops.add(ImageChops.multiply(image, tinted), grain, 1, -128))

"""Sprites: for every label with an outline, how it is drawn, and the drawing as a patch with an alpha channel."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image, ImageDraw

from manylabel.data.scenes.catalogue import KINDS, Setting
from manylabel.data.scenes.colour import Light
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.pen import Pen
from manylabel.data.scenes.sprite.building import house, lamp, lighthouse
from manylabel.data.scenes.sprite.flying import balloon, kite, plane
from manylabel.data.scenes.sprite.living import dog, fish, person, umbrella
from manylabel.data.scenes.sprite.plant import cactus, flower, mushroom, tree
from manylabel.data.scenes.sprite.sky import bird, cloud, moon, sun
from manylabel.data.scenes.sprite.vehicle import boat, car

SPRITES: dict[str, Callable[[Pen, Dice, Setting], None]] = {
    "sun": sun,
    "moon": moon,
    "cloud": cloud,
    "bird": bird,
    "plane": plane,
    "kite": kite,
    "balloon": balloon,
    "tree": tree,
    "flower": flower,
    "mushroom": mushroom,
    "cactus": cactus,
    "house": house,
    "lighthouse": lighthouse,
    "car": car,
    "lamp": lamp,
    "person": person,
    "dog": dog,
    "umbrella": umbrella,
    "boat": boat,
    "fish": fish,
}

# How far, in degrees, an object may be turned from upright.
TILT = {
    "bird": 28,
    "plane": 26,
    "kite": 30,
    "fish": 40,
    "balloon": 7,
    "umbrella": 14,
    "boat": 6,
    "flower": 9,
    "mushroom": 8,
    "cloud": 4,
}


def draw_sprite(label: str, dice: Dice, setting: Setting, light: Light, width: int, height: int) -> Image.Image:
    """The object on a transparent patch of width × height pixels."""
    kind, longest = KINDS[label], max(width, height)
    finer = 5 if longest < 32 else 3 if longest < 90 else 2  # drawn larger, then averaged: smooth edges, soft alpha
    large = Image.new("RGBA", (width * finer, height * finer))
    turn, flip = dice.uniform(-1, 1) * TILT.get(label, 2), dice.chance(0.5)
    box = (0, 0, width * finer, height * finer)
    SPRITES[label](Pen(ImageDraw.Draw(large), box, light, (kind.width, kind.height), turn, flip), dice, setting)
    return large.reduce(finer)

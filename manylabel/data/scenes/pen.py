"""Drawing in the units of a sprite: a box of its own proportions, stretched, turned and mirrored into pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from PIL import ImageDraw

from manylabel.data.scenes.colour import Colour, Light

Point = tuple[float, float]

# Unit circles with few and with many corners; more cannot be seen at the sizes of a sprite.
_COARSE, _FINE = ([(math.cos(2 * math.pi * i / n), math.sin(2 * math.pi * i / n)) for i in range(n)] for n in (12, 28))


def bow(x: float, y: float, rx: float, ry: float, start: float, end: float, steps: int = 14) -> list[Point]:
    """Points on an ellipse from one angle to another, in degrees; 0 is right, 90 is down."""
    span = math.radians(end - start) / steps
    first = math.radians(start)
    return [(x + rx * math.cos(first + i * span), y + ry * math.sin(first + i * span)) for i in range(steps + 1)]


class Pen:
    """Draws shapes given in a `design` box of width × height units into the pixel box at left, top."""

    def __init__(
        self,
        draw: ImageDraw.ImageDraw,
        box: tuple[float, float, float, float],  # left, top, width, height in pixels
        light: Light,
        design: tuple[float, float] = (1.0, 1.0),
        turn: float = 0.0,  # degrees
        flip: bool = False,
    ) -> None:
        left, top, width, height = box
        across, down = design
        cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        # A turned design is made smaller so that its corners stay inside the box.
        fit = min(across / (across * abs(cos) + down * abs(sin)), down / (across * abs(sin) + down * abs(cos)))
        sx, sy, mirror = fit * width / across, fit * height / down, -1.0 if flip else 1.0
        self._xx, self._xy = sx * cos * mirror, -sx * sin
        self._yx, self._yy = sy * sin * mirror, sy * cos
        self._x = left + width / 2 - self._xx * across / 2 - self._xy * down / 2
        self._y = top + height / 2 - self._yx * across / 2 - self._yy * down / 2
        self._thick = (sx + sy) / 2
        self._draw = draw
        self._light = light

    def _pixels(self, points: Iterable[Point]) -> list[Point]:
        xx, xy, x0, yx, yy, y0 = self._xx, self._xy, self._x, self._yx, self._yy, self._y
        return [(xx * x + xy * y + x0, yx * x + yy * y + y0) for x, y in points]

    def _fill(self, colour: Colour, glow: bool) -> Colour:
        return colour if glow else self._light.on(colour)

    def shape(self, points: Sequence[Point], colour: Colour, glow: bool = False) -> None:
        """A filled polygon; what glows keeps its colour at night."""
        self._draw.polygon(self._pixels(points), fill=self._fill(colour, glow))

    def oval(
        self, x: float, y: float, rx: float, ry: float, colour: Colour, turn: float = 0.0, glow: bool = False
    ) -> None:
        """A filled ellipse around (x, y), turned by degrees."""
        cos, sin = (math.cos(math.radians(turn)), math.sin(math.radians(turn))) if turn else (1.0, 0.0)
        xx, xy, yx, yy = self._xx, self._xy, self._yx, self._yy
        # One affine map from the unit circle to pixels: scale and turn the ellipse, then the pen's own map.
        ax, bx = rx * (xx * cos + xy * sin), ry * (xy * cos - xx * sin)
        ay, by = rx * (yx * cos + yy * sin), ry * (yy * cos - yx * sin)
        cx, cy = xx * x + xy * y + self._x, yx * x + yy * y + self._y
        circle = _FINE if max(rx, ry) * self._thick > 6 else _COARSE
        points = [(ax * c + bx * s + cx, ay * c + by * s + cy) for c, s in circle]
        self._draw.polygon(points, fill=self._fill(colour, glow))

    def disc(self, x: float, y: float, r: float, colour: Colour, glow: bool = False) -> None:
        self.oval(x, y, r, r, colour, 0.0, glow)

    def block(self, left: float, top: float, right: float, bottom: float, colour: Colour, glow: bool = False) -> None:
        """A filled rectangle."""
        self.shape([(left, top), (right, top), (right, bottom), (left, bottom)], colour, glow)

    def line(self, points: Sequence[Point], width: float, colour: Colour, glow: bool = False) -> None:
        """A stroke; never thinner than a pixel, so that fine lines do not vanish."""
        pixels = max(1, round(width * self._thick))
        self._draw.line(self._pixels(points), fill=self._fill(colour, glow), width=pixels, joint="curve")

    def limb(self, start: Point, end: Point, width: float, colour: Colour) -> None:
        """A stroke with round ends."""
        self.line((start, end), width, colour)
        self.disc(*start, width / 2, colour)
        self.disc(*end, width / 2, colour)

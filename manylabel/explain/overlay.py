"""Heat over a photo, with a caption that says what it shows."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from manylabel.explain.explanation import Explanation

COLOURS = "inferno"  # even in lightness, also without colour vision
STRONGEST = 0.8  # share of the heat where the map is highest; where it is 0 only the photo is seen
SIDE = 448  # pixels of the longer side of an overlay
INK, SOFT, PAPER = (20, 22, 26), (95, 100, 110), (255, 255, 255)
MARGIN = 8


def heated(photo: Image.Image, heat: np.ndarray) -> Image.Image:
    """The photo, greyer and lighter, under the map [H, W] 0..1 of its own size."""
    colour = matplotlib.colormaps[COLOURS](heat)[..., :3] * 255  # [H, W, 3]
    pixels = np.asarray(photo, np.float32)
    grey = np.repeat(pixels.mean(axis=2, keepdims=True), 3, axis=2)
    quiet = 255 - 0.85 * (255 - (0.5 * pixels + 0.5 * grey))
    weight = STRONGEST * heat[..., None] ** 0.8
    return Image.fromarray((quiet * (1 - weight) + colour * weight).round().clip(0, 255).astype(np.uint8))


def overlay(found: Explanation, side: int = SIDE, head: int | None = None) -> Image.Image:
    """The heated photo with `side` pixels on its longer side; of all attention heads together, or of one."""
    assert found.photo is not None
    scale = side / max(found.photo.size)
    width, height = (max(1, round(scale * length)) for length in found.photo.size)
    photo = found.photo.resize((width, height), Image.Resampling.BICUBIC)
    heat = found.sized(width, height) if head is None else found.sized_heads(width, height)[head]
    return heated(photo, heat)


def captioned(found: Explanation, side: int = SIDE, head: int | None = None) -> Image.Image:
    """The overlay, and below it the label, its score and threshold, and how the map was made."""
    how = f"{found.method.replace('_', '-')}, {found.stage}" + ("" if head is None else f", head {head + 1}")
    if found.threshold:
        decided = f"{'reaches' if found.above else 'below'} its threshold {share(found.threshold)}"
    else:  # one label per image: the highest score decides
        decided = "the highest score" if found.above else "not the highest score"
    lines = (f"{found.label}  {share(found.score)}", decided, how)
    return with_lines(overlay(found, side, head), lines)


def with_lines(picture: Image.Image, lines: tuple[str, ...], least: int = 160) -> Image.Image:
    """A picture with lines of text below it, the first one larger."""
    width = max(picture.width, least)
    sizes = [max(11, round(width / 20)) if i == 0 else max(10, round(width / 28)) for i in range(len(lines))]
    tall = picture.height + MARGIN + sum(round(1.45 * size) for size in sizes) + MARGIN // 2
    canvas = Image.new("RGB", (width, tall), PAPER)
    canvas.paste(picture, ((width - picture.width) // 2, 0))
    draw, y = ImageDraw.Draw(canvas), picture.height + MARGIN
    for i, (line, size) in enumerate(zip(lines, sizes, strict=True)):
        font = text_font(size, bold=i == 0)
        draw.text((MARGIN, y), fitted(line, font, width - 2 * MARGIN), font=font, fill=INK if i == 0 else SOFT)
        y += round(1.45 * size)
    return canvas


def fitted(text: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    """The text, cut short with … where it is wider than `width` pixels; line breaks become spaces."""
    text = " ".join(text.split())
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def share(value: float) -> str:
    return f"{100 * value:.1f} %"


@lru_cache
def text_font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"  # comes with matplotlib
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)

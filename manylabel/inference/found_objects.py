"""Objects that were found in an image, and pictures of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from manylabel.core.colours import COLOURS
from manylabel.inference.prediction import Unread


@dataclass(frozen=True)
class FoundObject:
    """One object in an image, in the pixels of the image as it is stored."""

    label: str
    score: float
    box: tuple[float, float, float, float]  # left, top, right, bottom
    mask: dict[str, Any] | None = field(default=None, repr=False)  # COCO's run lengths {"size", "counts"}

    def plain(self) -> dict[str, Any]:
        shown = {"label": self.label, "score": round(self.score, 4), "box": [round(side, 1) for side in self.box]}
        if self.mask is None:
            return shown
        return {**shown, "mask": {"size": list(self.mask["size"]), "counts": self.mask["counts"].decode()}}

    def pixels(self) -> np.ndarray | None:
        """[H, W] bool"""
        if self.mask is None:
            return None
        from pycocotools import mask

        found: np.ndarray = mask.decode(self.mask).astype(bool)
        return found


@dataclass(frozen=True)
class FoundObjects:
    """All objects of one image, highest score first; or in `error` why it could not be read: `objects` then raises a
    DecodeError when it is looked into."""

    image: str
    objects: tuple[FoundObject, ...] = ()
    error: str | None = None

    def __post_init__(self) -> None:
        if self.error is not None:
            object.__setattr__(self, "objects", Unread(f"{self.image}: {self.error}"))

    def plain(self, top: int | None = None) -> dict[str, Any]:
        """For JSON."""
        if self.error is not None:
            return {"image": self.image, "error": self.error}
        return {"image": self.image, "objects": [one.plain() for one in self.objects[:top]]}


def overlay(picture: Image.Image, found: FoundObjects) -> Image.Image:
    """The picture with boxes, masks and names drawn on it."""
    shown = picture.convert("RGB")
    colours = {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(sorted({o.label for o in found.objects}))}
    for one in reversed(found.objects):  # the surest on top
        pixels = one.pixels()
        if pixels is not None:
            tint = Image.new("RGB", shown.size, colours[one.label])
            shown.paste(tint, mask=Image.fromarray((110 * pixels).astype(np.uint8)))
    draw = ImageDraw.Draw(shown)
    for one in reversed(found.objects):
        left, top, right, bottom = one.box
        if right > left and bottom > top:
            draw.rectangle((left, top, right, bottom), outline=colours[one.label], width=2)
        text = f"{one.label} {one.score:.2f}"
        corner = (left, max(0.0, top - 12))
        draw.rectangle(draw.textbbox(corner, text), fill=colours[one.label])
        draw.text(corner, text, fill="white")
    return shown

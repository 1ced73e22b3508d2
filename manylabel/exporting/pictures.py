"""The pictures that an exported file is proved with: those its run held out, else made-up ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from manylabel.bundle import Bundle
from manylabel.data.transform import needed_side
from manylabel.error import DecodeError, ManylabelError
from manylabel.run.judging import images_of_run

MADE_UP = 32
SIZES = ((320, 240), (240, 320), (97, 131), (500, 64))


def made_up() -> list[Image.Image]:
    """Smooth colours, every second one with noise, of several sizes."""
    rng, made = np.random.default_rng(0), []
    for number in range(MADE_UP):
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3)).astype(np.uint8))
        pixels = np.asarray(coarse.resize(SIZES[number % len(SIZES)], Image.Resampling.BICUBIC)).astype(np.int16)
        pixels = pixels + (number % 2) * rng.integers(-20, 21, pixels.shape)
        made.append(Image.fromarray(pixels.clip(0, 255).astype(np.uint8)))
    return made


@dataclass(frozen=True)
class Pictures:
    """Upright RGB pictures, and where they are from."""

    given: Sequence[Image.Image] = field(default_factory=made_up)
    source: str = f"{MADE_UP} generated images"
    matrix: np.ndarray | None = None  # [n, N] what is known to be in them


def pictures_of(bundle: Bundle, task: str, home: Path, most: int, split: str | None = None) -> Pictures:
    """At most so many, spread evenly over the images that the run in `home` was judged on, or over those of `split`."""
    at_least = needed_side(bundle.tasks[task].preprocess)
    try:
        table = images_of_run(bundle, task, home, split)
    except (ManylabelError, OSError) as error:
        return Pictures(source=f"{MADE_UP} generated images (those of the run cannot be read: {str(error)[:200]})")
    rows = np.unique(np.linspace(0, len(table) - 1, min(most, len(table))).round().astype(int))
    found, kept = [], []
    for row in rows.tolist():
        try:
            found.append(table.source.read(str(table.keys[row]), at_least=at_least))
            kept.append(row)
        except DecodeError:
            continue
    if not found:
        return Pictures(source=f"{MADE_UP} generated images (none of {table.name} can be read)")
    return Pictures(found, f"{len(found)} {split or 'held-out'} images of {table.name}", table.matrix[kept])

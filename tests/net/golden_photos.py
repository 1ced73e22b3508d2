"""Small photos that runs of the net train on and are asked about: drawn from a seed, the same every time."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220), "white": (240, 240, 240)}
WORDS = """red 1 0 0 1
green 0 1 0 1
blue 0 0 1 1
white 1 1 1 1
black -1 -1 -1 1
pink 2 1 1 1
"""
HIERARCHY = """colourful: {description: anything but white}
red: {parents: [colourful], synonyms: [crimson]}
green: {parents: [colourful]}
blue: {parents: [colourful]}
white: {}
"""
SHAPES = {"square.png": (64, 64), "meadow.png": (64, 64), "tall.png": (44, 60), "grey.png": (52, 40)}  # width, height


def _backdrop(rng: np.random.Generator, width: int, height: int) -> np.ndarray:
    """A slanted grey gradient: smooth, so that a file of it is small. [H, W, 3]"""
    y, x = np.mgrid[0:height, 0:width]
    slope = 60 * (x * rng.uniform(-1, 1) / width + y * rng.uniform(-1, 1) / height)
    return np.clip(slope[..., None] + rng.integers(90, 150, 3), 0, 255)


def _photo(rng: np.random.Generator, names: list[str], width: int = 64, height: int = 64) -> Image.Image:
    pixels = _backdrop(rng, width, height)
    for name in names:
        side = int(rng.integers(14, 26))
        y, x = int(rng.integers(0, height - side)), int(rng.integers(0, width - side))
        pixels[y : y + side, x : x + side] = COLOURS[name]
    return Image.fromarray(pixels.astype(np.uint8))


def draw_labelled(folder: Path, count: int, seed: int = 0) -> Path:
    """images/ and a labels.csv that names the colours of each; some cells of a wide table are blank: unknown."""
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        names = [name for name in COLOURS if rng.random() < 0.45]
        _photo(rng, names).save(folder / "images" / f"photo{number:03d}.png")
        told = ["" if rng.random() < 0.1 else int(name in names) for name in COLOURS]
        rows.append([f"photo{number:03d}.png", *told])
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["file_name", *COLOURS], *rows])
    (folder / "hierarchy.yaml").write_text(HIERARCHY, encoding="utf-8")
    return folder


def draw_one_each(folder: Path, count: int, seed: int = 0) -> Path:
    """A folder of photos for each colour."""
    rng = np.random.default_rng(seed)
    for name in COLOURS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            _photo(rng, [name]).save(folder / name / f"{number:02d}.png")
    return folder


def draw_shown(folder: Path, seed: int = 1) -> list[Path]:
    """Photos to predict: two in the network's own size, one upright, one in shades of grey."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, (width, height)) in enumerate(SHAPES.items()):
        photo = _photo(rng, list(COLOURS)[: number + 1], width, height)
        (photo.convert("L") if name == "grey.png" else photo).save(folder / name)
    return [folder / name for name in SHAPES]


def write_words(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WORDS, encoding="utf-8")
    return path

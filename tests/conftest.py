"""Shared fixtures: small real files on disk, tiny models with random weights, and a cache of their own."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from manylabel import console

SHARED = Path(__file__).parents[2] / "shared" / "data"
TINY = ("backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", "head.name=linear")
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220), "white": (240, 240, 240)}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYLABEL_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "QUIET", True)


@pytest.fixture(autouse=True, scope="session")
def _threads() -> None:
    torch.set_num_threads(min(2, os.cpu_count() or 1))


@pytest.fixture
def tiny_settings() -> list[str]:
    """--set values for a model that trains in seconds."""
    return list(TINY)


def write_photos(folder: Path, count: int, seed: int = 0) -> list[list[str]]:
    """`count` photos of coloured patches, each with the labels of its colours; returns the labels of each."""
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(count):
        labels = [name for name in COLOURS if rng.random() < 0.4]
        pixels = rng.integers(90, 130, (72, 96, 3)).astype(np.uint8)
        for name in labels:
            y, x = rng.integers(0, 48), rng.integers(0, 72)
            pixels[y : y + 24, x : x + 24] = COLOURS[name]
        Image.fromarray(pixels).save(folder / "images" / f"photo{i:03d}.jpg", quality=92)
        rows.append(labels)
    return rows


def write_csv(path: Path, rows: list[list[str]], header: list[str]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_labelled_photos(folder: Path, count: int) -> Path:
    """Photos and the labels.csv that belongs to them."""
    labels = write_photos(folder, count)
    rows = [[f"photo{i:03d}.jpg", "|".join(names)] for i, names in enumerate(labels)]
    write_csv(folder / "labels.csv", rows, ["file_name", "labels"])
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder as people have it: images/ and a labels.csv without a split."""
    return write_labelled_photos(tmp_path / "photos", 48)


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Folders red/, green/, blue/, white/ of twelve photos each."""
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        folder = tmp_path / "colours" / name
        folder.mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(90, 130, (64, 64, 3)).astype(np.uint8)
            pixels[8:56, 8:56] = colour
            Image.fromarray(pixels).save(folder / f"{i:02d}.png")
    return tmp_path / "colours"


@pytest.fixture
def make_csv(tmp_path: Path) -> Callable[[str], Path]:
    """A data folder with three real images a.jpg, b.jpg, c.jpg and the given text as labels.csv."""

    def make(text: str) -> Path:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        for i, name in enumerate("abc"):
            Image.new("RGB", (40, 30), (60 * i, 90, 120)).save(folder / f"{name}.jpg")
        path = folder / "labels.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return make


@pytest.fixture
def coco_small() -> Path:
    folder = SHARED / "coco14-small"
    if not folder.is_dir():
        pytest.skip("needs the real COCO sample beside the repository (../shared/data/coco14-small)")
    return folder

"""The embedded data set: little landscapes drawn on the fly, with labels, boxes and masks, the same everywhere.

A scene is named by a seed and an index. Nothing is stored or downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manylabel.data.scenes.catalogue import EXCLUSIVE, IMPLIES, LABELS, all_labels, choose
from manylabel.data.scenes.compose import Patch, paint
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.layout import plan_scene
from manylabel.error import ConfigError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN

SMALLEST_SIZE = 64  # below this the smallest objects would vanish

_COLUMN = {label: i for i, label in enumerate(LABELS)}


@dataclass
class SceneObject:
    """One object; mask and box are what is visible of it."""

    label: str
    box: tuple[float, float, float, float]  # left, top, right, bottom in pixels
    mask: np.ndarray  # bool [H, W]


@dataclass
class Scene:
    image: np.ndarray  # uint8 [H, W, 3]
    labels: frozenset[str]
    objects: list[SceneObject]  # from far to near


def scene_labels(seed: int, index: int) -> frozenset[str]:
    """The labels of a scene without drawing it."""
    return all_labels(*choose(Dice("labels", seed, index)))


def scene_image(seed: int, index: int, size: int = 256) -> np.ndarray:
    """The picture of a scene alone. [size, size, 3] uint8"""
    _check_size(size)
    return paint(plan_scene(seed, index), seed, index, size)[0]


def draw_scene(seed: int, index: int, size: int = 256) -> Scene:
    """A scene with the box and mask of every object; masks do not overlap."""
    _check_size(size)
    image, patches = paint(plan_scene(seed, index), seed, index, size)
    return Scene(image, scene_labels(seed, index), _visible(patches, size))


def label_matrix(seed: int, indices: Sequence[int], noise: float = 0.0, unknown: float = 0.0) -> np.ndarray:
    """Labels of many scenes, a share of entries flipped and then a share hidden. [n, len(LABELS)] int8

    A row depends only on the seed and its own index; what is faulty at one share is so at any larger share.
    """
    for name, share in (("noise", noise), ("unknown", unknown)):
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"scenes: {name} is a share from 0 to 1, not {share}")
    matrix = np.full((len(indices), len(LABELS)), ABSENT, np.int8)
    for row, index in zip(matrix, indices, strict=True):
        row[[_COLUMN[label] for label in scene_labels(seed, index)]] = PRESENT
        if noise or unknown:
            roll = Dice("faults", seed, index).roll
            draws = np.array([roll() for _ in range(2 * len(LABELS))]).reshape(2, -1)
            row[:] = np.where(draws[0] < noise, PRESENT + ABSENT - row, row)
            row[draws[1] < unknown] = UNKNOWN
    return matrix


def _visible(patches: Sequence[Patch], size: int) -> list[SceneObject]:
    """What is left of each object once the nearer ones are in front of it."""
    taken = np.zeros((size, size), bool)
    objects = []
    for patch in reversed(patches):
        outline = patch.outline(size)
        mask = outline & ~taken
        taken |= outline
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        box = (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))
        objects.append(SceneObject(patch.label, box, mask))
    return objects[::-1]


def _check_size(size: int) -> None:
    if size < SMALLEST_SIZE:
        raise ConfigError(f"scenes: size must be at least {SMALLEST_SIZE} pixels, not {size}")


__all__ = [
    "EXCLUSIVE",
    "IMPLIES",
    "LABELS",
    "Scene",
    "SceneObject",
    "draw_scene",
    "label_matrix",
    "scene_image",
    "scene_labels",
]

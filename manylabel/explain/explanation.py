"""What an explanation holds: one image, one label, and where in the image the model found it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import numpy as np
from PIL import Image

from manylabel.explain.frame import Frame


class Facts(TypedDict):
    """What an explanation holds beside the photo; its fields say more."""

    label: str
    score: float
    threshold: float
    above: bool
    method: str
    stage: str
    grids: Mapping[str, np.ndarray]
    head_grids: Mapping[str, np.ndarray]
    experts: tuple[Mapping[str, float], ...]
    shares: Mapping[str, float]


class PlainExplanation(TypedDict):
    """For JSON."""

    image: str
    label: str
    score: float
    threshold: float
    above: bool
    method: str
    stage: str
    size: list[int]  # width, height
    grids: dict[str, list[list[float]]]
    experts: NotRequired[list[dict[str, float]]]
    shares: NotRequired[dict[str, float]]


class Unreadable(TypedDict):
    """For JSON, of an image that could not be read."""

    image: str
    error: str


@dataclass(frozen=True)
class Explanation:
    """Where the model looked for a label; with `error` the image could not be read and the rest is empty.

    Maps are kept on their grids and spread over the photo when they are asked for, so that thousands need little memory.
    """

    image: str
    label: str = ""
    score: float = 0.0
    threshold: float = 0.0
    above: bool = False
    method: str = ""
    stage: str = ""  # several with '+' between them
    grids: Mapping[str, np.ndarray] = field(default_factory=dict)  # stage → [rows, columns], values as the method gives
    head_grids: Mapping[str, np.ndarray] = field(default_factory=dict)  # stage → [h, rows, columns] of attention heads
    experts: tuple[Mapping[str, float], ...] = ()  # per layer of gates: expert → weight for this label in this image
    shares: Mapping[str, float] = field(default_factory=dict)  # stage → its share in what the neck mixed
    size: tuple[int, int] = (0, 0)  # width and height of the upright photo
    frame: Frame | None = None
    photo: Image.Image | None = field(default=None, repr=False)  # upright, made small
    error: str | None = None

    @property
    def map(self) -> np.ndarray:
        """Over the whole photo, its highest value 1. [H, W]"""
        return self.sized(*self.size)

    @property
    def head_maps(self) -> np.ndarray | None:
        """The same for each attention head. [h, H, W]"""
        return self.sized_heads(*self.size) if self.head_grids else None

    def stage_map(self, stage: str) -> np.ndarray:
        """The part of the map that comes from one stage's tokens. [H, W]"""
        return _to_one(self._spread({stage: self.grids[stage][None]}, *self.size))[0]

    def sized(self, width: int, height: int) -> np.ndarray:
        """The map with another resolution. [height, width]"""
        return _to_one(self._spread({stage: grid[None] for stage, grid in self.grids.items()}, width, height))[0]

    def sized_heads(self, width: int, height: int) -> np.ndarray:
        """[h, height, width]"""
        return _to_one(self._spread(self.head_grids, width, height))

    def _spread(self, grids: Mapping[str, np.ndarray], width: int, height: int) -> np.ndarray:
        """The sum over stages; a token of a coarse grid covers more of the image, so its weight is spread thinner."""
        if self.frame is None:
            raise ValueError(f"{self.image} has no explanation: {self.error}")
        parts = [self.frame.spread(g * (g.shape[1] * g.shape[2]), width, height) for g in grids.values()]
        return np.sum(parts, axis=0)

    def plain(self) -> PlainExplanation | Unreadable:
        if self.error is not None:
            return {"image": self.image, "error": self.error}
        facts: PlainExplanation = {
            "image": self.image,
            "label": self.label,
            "score": self.score,
            "threshold": self.threshold,
            "above": self.above,
            "method": self.method,
            "stage": self.stage,
            "size": list(self.size),
            "grids": {stage: _rounded(grid) for stage, grid in self.grids.items()},
        }
        if self.experts:
            facts["experts"] = [{name: round(w, 4) for name, w in layer.items()} for layer in self.experts]
        if self.shares:
            facts["shares"] = {stage: float(f"{share:.4g}") for stage, share in self.shares.items()}
        return facts


def _to_one(maps: np.ndarray) -> np.ndarray:
    """Each divided by its highest value; a map that is 0 everywhere stays so. [n, H, W]"""
    highest = maps.max(axis=(1, 2), keepdims=True)
    return np.divide(maps, highest, out=np.zeros_like(maps), where=highest > 0)


def _rounded(grid: np.ndarray) -> list[list[float]]:
    highest = float(grid.max())
    return [[round(float(v) / highest, 4) if highest > 0 else 0.0 for v in row] for row in grid]

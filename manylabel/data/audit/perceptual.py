"""A 64-bit hash of how an image looks, and a thumbnail to make sure: both survive rescaling, recompression, brightness.

The hash holds the signs of the 64 lowest frequencies (DCT) of the image as 32 × 32 grey values, without the mean.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

SIDE = 32
THUMBNAIL_SIDE = 16
BITS = 64
NOTHING = 4.0  # amplitudes below this are rounding; they are all called 0, so that flat parts do not flicker

_ORDER = sorted(
    ((u, v) for u in range(12) for v in range(12) if u + v > 0), key=lambda place: (place[0] + place[1], place)
)[:BITS]
_ROWS, _COLUMNS = np.array(_ORDER).T
_COSINES = np.cos(np.pi / SIDE * (np.arange(SIDE) + 0.5) * np.arange(12)[:, None]).astype(np.float32)  # [12, SIDE]


def look(image: Image.Image) -> tuple[int, np.ndarray]:
    """The hash of an image, and its thumbnail. (int below 2**64, [THUMBNAIL_SIDE²] uint8)"""
    grey = image if image.mode == "L" else image.convert("L")
    small = np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BOX), np.float32)  # stretched: all are compared alike
    waves = _COSINES @ small @ _COSINES.T  # [12, 12]
    bits = np.packbits(waves[_ROWS, _COLUMNS] > NOTHING)
    half = SIDE // THUMBNAIL_SIDE
    thumbnail = small.reshape(THUMBNAIL_SIDE, half, THUMBNAIL_SIDE, half).mean(axis=(1, 3))
    return int.from_bytes(bits.tobytes(), "big"), np.rint(thumbnail).astype(np.uint8).ravel()


def likeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How alike pairs of thumbnails are, from -1 to 1: the correlation of their edges. [k, 256] × [k, 256] → [k]

    Edges, because any two photos that are bright above and dark below have grey values that correlate.
    """
    x, y = _edges(a), _edges(b)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return (x * y).sum(axis=1) / np.maximum(scale, 1e-9)


def _edges(thumbnails: np.ndarray) -> np.ndarray:
    squares = thumbnails.reshape(-1, THUMBNAIL_SIDE, THUMBNAIL_SIDE).astype(np.float32)
    parts = [np.diff(squares, axis=axis).reshape(len(squares), -1) for axis in (1, 2)]
    edges = np.concatenate(parts, axis=1)  # [k, 2 · 16 · 15]
    return edges - edges.mean(axis=1, keepdims=True)

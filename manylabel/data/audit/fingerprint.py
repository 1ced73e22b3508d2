"""What an image is recognised by wherever it lies: a digest of its bytes, and how it looks.

The name and place of a file play no part. An image that is drawn and stored nowhere is known by its stamp.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageStat

from manylabel.data.audit.duplicates import BLANK, confirmed, near_pairs_between
from manylabel.data.audit.image import digest
from manylabel.data.audit.inspection import inspect_table
from manylabel.data.audit.perceptual import THUMBNAIL_SIDE, look
from manylabel.data.source import ImageSource
from manylabel.data.table import Table
from manylabel.error import DecodeError

FINGERPRINT = np.dtype(
    [
        ("content", "<u8", 2),  # digest of the bytes
        ("look", "<u8"),
        ("thumbnail", "u1", THUMBNAIL_SIDE**2),
        ("shows", "?"),  # something: the look of a blank image means nothing
    ]
)


def fingerprint(source: ImageSource, key: str, image: Image.Image) -> np.ndarray:
    """Of an image that was just read from this source, at whatever size. One FINGERPRINT"""
    found = np.zeros((), FINGERPRINT)
    raw = getattr(source, "raw", None)
    if raw is None:
        found["content"] = _of_stamp(source, key)
        return found
    grey = image.convert("L")
    with suppress(OSError, DecodeError):  # it was there a moment ago
        found["content"] = digest(raw(key))
    found["look"], found["thumbnail"] = look(grey)
    found["shows"] = ImageStat.Stat(grey).stddev[0] >= BLANK
    return found


def fingerprints_of(
    table: Table, workers: int, advance: Callable[[int], None] = lambda _: None
) -> tuple[np.ndarray, np.ndarray]:
    """(FINGERPRINT of every image [n], which of them can be read [n] bool).

    What an earlier check or run found out about images that have not changed since is not looked at again.
    """
    found = np.zeros(len(table), FINGERPRINT)
    if not hasattr(table.source, "raw"):
        for row, key in enumerate(table.keys.tolist()):
            found["content"][row] = _of_stamp(table.source, key)
        advance(len(table))
        return found, np.ones(len(table), bool)
    inspection = inspect_table(table, workers, advance)
    for name in ("content", "look", "thumbnail"):
        found[name] = inspection.facts[name]
    found["shows"] = inspection.readable & (inspection.facts["deviation"] >= BLANK)
    return found, inspection.readable


def _of_stamp(source: ImageSource, key: str) -> np.ndarray:
    return digest(source.stamp(key).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class KnownImages:
    """A set of images that others are looked for in."""

    content: np.ndarray  # [n, 2] uint64, each once
    look: np.ndarray  # [m] uint64, of those that show something
    thumbnail: np.ndarray  # [m, THUMBNAIL_SIDE²] uint8

    @classmethod
    def of(cls, fingerprints: np.ndarray) -> KnownImages:
        _, first = np.unique(_whole(fingerprints["content"]), return_index=True)
        each = fingerprints[np.sort(first)]
        showing = each[each["shows"]]
        return cls(each["content"], showing["look"], showing["thumbnail"])

    def find(self, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of these FINGERPRINTs are of the same bytes [k] bool, and which others look the same [k] bool."""
        exact = np.isin(_whole(others["content"]), _whole(self.content))
        asked = np.flatnonzero(others["shows"] & ~exact)
        pairs = near_pairs_between(others["look"][asked], self.look)
        pairs = pairs[confirmed(others["thumbnail"][asked], self.thumbnail, pairs)]
        near = np.zeros(len(others), bool)
        near[asked[pairs[:, 0]]] = True
        return exact, near


def _whole(content: np.ndarray) -> np.ndarray:
    """Digests as one value each. [n, 2] uint64 → [n]"""
    return np.ascontiguousarray(content).view("V16").ravel()

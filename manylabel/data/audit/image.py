"""One image looked at once: its size and kind, what it contains and how it looks. Fixed-size records, made for files."""

from __future__ import annotations

import hashlib

import numpy as np

from manylabel.data.audit.perceptual import THUMBNAIL_SIDE, look
from manylabel.data.decode import decode, describe
from manylabel.data.source import FileSource, ImageSource
from manylabel.error import DecodeError

DECODED_SIDE = 64  # a JPEG is decoded no larger than needed: all of it is read, so damage is found
LARGE_FILE = 1 << 26  # bytes from which the header is looked at before the whole file is read

FACTS = np.dtype(
    [
        ("key", "<u8", 2),  # digest of the image's name
        ("stamp", "<u8", 2),  # digest of its stamp
        ("content", "<u8", 2),  # digest of its bytes, or of its pixels where there are no bytes
        ("look", "<u8"),
        ("bytes", "<i8"),
        ("width", "<i4"),  # upright; 0 = unreadable
        ("height", "<i4"),
        ("mean", "<f4"),  # of the grey values
        ("deviation", "<f4"),
        ("format", "S12"),
        ("thumbnail", "u1", THUMBNAIL_SIDE**2),
    ]
)


def digest(data: bytes) -> np.ndarray:
    """16 bytes that stand for these. [2] uint64"""
    return np.frombuffer(hashlib.blake2b(data, digest_size=16).digest(), "<u8")


def inspect_image(source: ImageSource, key: str, facts: np.ndarray) -> str:
    """Fill one row of FACTS; returns why not when the image cannot be read, and leaves the row alone."""
    try:
        data = _bytes(source, key)
        if data is not None:
            header = describe(data)
            image = decode(data, at_least=DECODED_SIDE)
            width, height, kind = header.width, header.height, header.format
        else:
            image = source.read(key)
            data = np.asarray(image).tobytes()
            (width, height), kind = image.size, ""
    except DecodeError as error:
        return str(error)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    grey = image.convert("L")
    values = np.asarray(grey, np.float32)
    facts["look"], facts["thumbnail"] = look(grey)
    facts["content"] = digest(data if kind else b"%d %d " % (width, height) + data)
    facts["bytes"] = len(data) if kind else 0
    facts["width"], facts["height"], facts["format"] = width, height, kind.encode()
    facts["mean"], facts["deviation"] = values.mean(), values.std()
    return ""


def _bytes(source: ImageSource, key: str) -> bytes | None:
    """The image as it is stored, read once for everything; None where images are drawn."""
    if isinstance(source, FileSource):
        file = source.path(key)
        if not file.is_file() or file.stat().st_size > LARGE_FILE:
            source.describe(key)  # says what is wrong with a missing file, a pipe or a film, without reading it all
    raw = getattr(source, "raw", None)
    return raw(key) if raw is not None else None

"""Small pictures for pages."""

from __future__ import annotations

import base64
import io

from manylabel.data.source import ImageSource
from manylabel.error import DecodeError

SIDE = 144  # pixels at most


def thumbnail(source: ImageSource, key: str, side: int = SIDE) -> str | None:
    """A small JPEG as a data address, or None when the image cannot be read."""
    try:
        image = source.read(key, at_least=side)
    except (DecodeError, OSError):
        return None
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()

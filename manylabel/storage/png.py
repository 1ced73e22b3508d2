"""Pictures of ours as files: whole or not at all, and with our mark, so that we only ever replace our own."""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from manylabel.storage.atomic import replacing

FACTS = {"Software": "manylabel"}


def save_png(picture: Image.Image, path: Path) -> Path:
    facts = PngInfo()
    for key, text in FACTS.items():
        facts.add_text(key, text)
    with replacing(path) as temporary:
        picture.save(temporary, "PNG", pnginfo=facts)
    return path

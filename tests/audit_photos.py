"""Pictures that look as different as photos do, and tables of them, for the tests of `data check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.labels import LabelSpace


def photo(seed: int, size: tuple[int, int] = (240, 180)) -> Image.Image:
    """Soft clouds of colour with some hard edges; no two seeds look alike."""
    rng = np.random.default_rng(seed)
    clouds = Image.fromarray(rng.integers(30, 226, (9, 12, 3)).astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)
    pixels = np.asarray(clouds).copy()
    for _ in range(6):
        x, y = rng.integers(0, size[0] - 40), rng.integers(0, size[1] - 30)
        pixels[y : y + rng.integers(10, 30), x : x + rng.integers(10, 40)] = rng.integers(20, 236, 3)
    return Image.fromarray(pixels)


def write(folder: Path, pictures: Mapping[str, Image.Image | bytes]) -> Path:
    """Files by name; an image becomes what its name says, bytes stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        if isinstance(picture, bytes):
            (folder / name).write_bytes(picture)
        else:
            picture.save(folder / name, **({"quality": 92} if name.endswith(".jpg") else {}))
    return folder


def table_of(
    folder: Path, labels: Mapping[str, Sequence[str]], split: Mapping[str, str] | None = None, name: str = "photos"
) -> Table:
    """A table of these files with these labels; every label that is not given is absent."""
    space = LabelSpace(tuple(sorted({label for given in labels.values() for label in given})))
    return Table(
        name=name,
        source=FileSource(folder),
        keys=np.array(list(labels)),
        labels=space,
        matrix=space.matrix([[space.index(label) for label in given] for given in labels.values()]),
        split=None if split is None else np.array([split[key] for key in labels]),
    )

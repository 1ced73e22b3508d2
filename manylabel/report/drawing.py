"""Pictures as PNG files: axes without a display, colours, and names that stay plain words."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manylabel.core.colours import COLOURS
from manylabel.storage.atomic import replacing
from manylabel.storage.png import FACTS


def slug(name: str) -> str:
    """A name as part of a file's name."""
    return re.sub(r"[^a-zA-Z0-9.=-]+", "-", name).strip("-")[:40] or "x"


def plain(name: str) -> str:
    """Text as it is: no mathematics between dollar signs, and no name that a legend would hide."""
    text = name.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


@contextmanager
def axes_in(path: Path, width: float, height: float) -> Iterator[Any]:
    """Axes that are saved to a file; no display is needed and no state is left behind."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    yield axes
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png", metadata=FACTS)


def embedded(figures: Sequence[tuple[str, Path]]) -> list[dict[str, str]]:
    """(caption, PNG file) of each, as a page holds them."""
    return [
        {"caption": caption, "picture": "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()}
        for caption, path in figures
    ]


def colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]

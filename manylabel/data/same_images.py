"""Which images of several tables are the same, by their content: a name says nothing, a copy is the same image.

Images that nobody stores (drawn scenes) are the same by their stamp. Files are read only where that can tell something:
not those that lie at one place for all tables, and not one that no other has as many bytes as. What was read is remembered
(`contents.py`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import nullcontext

import numpy as np

from manylabel import console
from manylabel.data.contents import contents
from manylabel.data.source import FileSource, ImageSource
from manylabel.data.table import Table
from manylabel.stop import StopRequest

DRAWN = -1  # the size of an image that is stored nowhere


def same_images(tables: Sequence[Table], stop: StopRequest | None = None) -> list[np.ndarray]:
    """A number for each row of each table: the same image has the same one, in the order in which images first appear."""
    looks = [[_look(table.source, key) for key in table.keys.tolist()] for table in tables]
    holders = Counter(place for look in looks for place in {place for place, _ in look})
    size_of = {place: size for look in looks for place, size in look}
    common = Counter(size_of.values())
    # Sizes of images that not all tables have at the same place: only these can be copies.
    loose = {size for place, size in size_of.items() if holders[place] < len(tables) and size != DRAWN}
    unsized = bool(loose) and None in common  # an image of unknown size may be a copy of any
    asked = [
        np.flatnonzero([size != DRAWN and (unsized or (size in loose and common[size] > 1)) for _, size in look])
        for look in looks
    ]
    number: dict[Hashable, int] = {}
    found = []
    total = sum(map(len, asked))
    with console.counting("comparing images of tasks", total) if total else nullcontext(_nothing) as advance:
        for table, look, rows in zip(tables, looks, asked, strict=True):
            digests = contents(table.source, table.keys[rows].tolist(), stop, advance)
            content: dict[int, Hashable] = dict(zip(rows.tolist(), digests, strict=True))
            names = [content.get(row, place) for row, (place, _) in enumerate(look)]
            found.append(np.array([number.setdefault(name, len(number)) for name in names], np.int64))
    return found


def _nothing(_: int) -> None:
    """Nobody waits for it."""


def _look(source: ImageSource, key: str) -> tuple[Hashable, int | None]:
    """(where an image lies, how many bytes it has; None = only reading it tells)"""
    if not hasattr(source, "raw"):
        return source.stamp(key), DRAWN
    if not isinstance(source, FileSource):
        return (str(getattr(source, "root", "")), key), None
    try:
        facts = os.stat(source.path(key))
    except (OSError, ValueError):  # whoever reads it says so
        return str(source.path(key)), DRAWN
    return (facts.st_dev, facts.st_ino or os.path.abspath(source.path(key))), facts.st_size

"""Files with the same bytes, found without reading most of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable
from pathlib import Path

from manylabel.console import counting

TAIL = 4096  # bytes at the end: photos of one size in bytes differ there, and their headers do not


def same_content(root: Path, keys: list[str]) -> list[list[int]]:
    """Groups of positions in `keys` whose files are equal byte by byte, each in order; files alone are in none.

    Empty files are in no group: they are broken, not the same photo. A file that cannot be read is in none either.
    """
    groups = _divided([list(range(len(keys)))], lambda i: os.stat(root / keys[i]).st_size or None)
    with counting("comparing images of equal size", sum(map(len, groups))) as advance:

        def end_of_file(i: int) -> bytes:
            advance(1)
            return _tail(root / keys[i])

        groups = _divided(groups, end_of_file)
    with counting("comparing images whose ends are equal", sum(map(len, groups))) as advance:

        def whole_file(i: int) -> bytes:
            advance(1)
            with open(root / keys[i], "rb") as file:
                return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()

        return sorted(_divided(groups, whole_file))


def _divided(groups: list[list[int]], mark: Callable[[int], Hashable]) -> list[list[int]]:
    """Each group divided into those with an equal mark; one that is alone then, or has no mark, is dropped."""
    divided = []
    for group in groups:
        parts: dict[Hashable, list[int]] = {}
        for i in group:
            try:
                found = mark(i)
            except OSError:  # who decodes it later says why
                continue
            if found is not None:
                parts.setdefault(found, []).append(i)
        divided += [part for part in parts.values() if len(part) > 1]
    return divided


def _tail(path: Path) -> bytes:
    with open(path, "rb", buffering=0) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        return hashlib.blake2b(file.read(TAIL), digest_size=16).digest()

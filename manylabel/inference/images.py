"""The images that somebody asks about: files, folders, and what is inside shards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manylabel.data.shard.packed import PackedImage, PackedImages, find_packed
from manylabel.data.walk import walk_images
from manylabel.error import DataError


class FoundImages:
    """Files, and images inside shards, in the order they were asked for."""

    def __init__(self, parts: Sequence[Sequence[Path] | PackedImages]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Path | PackedImage]:
        for part in self.parts:
            yield from part


def find_images(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> FoundImages:
    """Of one path or several: files as they are, every image inside folders, and every image in tar and Parquet shards,
    which stay packed.

    A file that is not there is an error of its own when it is read, unless none of them is there.
    """
    given = list(map(Path, [paths] if isinstance(paths, (str, os.PathLike)) else paths))
    parts = [_find(path) for path in given]
    if all(part is None for part in parts):
        raise DataError(f"{given[0]} does not exist" if given else "no image was named")
    return FoundImages([[path] if part is None else part for path, part in zip(given, parts, strict=True)])


def _find(path: Path) -> Sequence[Path] | PackedImages | None:
    if path.is_dir():
        inside = [path / name for name in walk_images(path)]
        found = inside or find_packed(path)
        if not found:
            raise DataError(f"there is no image in the folder {path}")
        return found
    return find_packed(path) or ([path] if os.path.exists(path) else None)

"""Images in tar shards, read by their place in the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manylabel import console
from manylabel.data.shard.locate import Shard
from manylabel.data.shard.recent import Recent
from manylabel.data.shard.tar_header import SPARSE
from manylabel.data.shard.tar_index import TarIndex, open_index
from manylabel.data.source import EncodedSource
from manylabel.data.walk import is_image_name
from manylabel.error import DecodeError

OPEN_FILES = 64  # of each process
LARGEST_MEMBER = 1 << 30  # bytes of an image; a tar with holes costs nothing on disk and can claim any size


class _Handle:
    """An open file that closes itself when nobody uses it any more."""

    def __init__(self, index: TarIndex) -> None:
        self.number = os.open(index.path, os.O_RDONLY)
        facts = os.fstat(self.number)
        if (facts.st_size, facts.st_mtime_ns, facts.st_ino) != (index.length, index.changed, index.inode):
            raise DecodeError(f"{index.path} was changed while it was in use; start again")

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


@dataclass(frozen=True, eq=False)
class TarSource(EncodedSource):
    """A key is the name of a shard and that of a file in it: 'train-000/dogs/17.jpg'.

    There are no blocks: an image costs one read at a known place, in any order.
    """

    root: Path
    shards: dict[str, TarIndex]
    _files: Recent[Path, _Handle] = field(default_factory=lambda: Recent(OPEN_FILES), repr=False)

    @classmethod
    def of(cls, shards: Sequence[Shard], root: Path) -> TarSource:
        """Walks over shards that are new; the others are remembered."""
        with console.counting("looking into shards", len(shards)) as advance:
            found = {}
            for shard in shards:
                found[shard.name] = open_index(shard.path)
                advance(1)
        return cls(root, found)

    def find(self, key: str) -> tuple[TarIndex, int]:
        """The shard of an image, and its number in it."""
        at = len(key)
        while (at := key.rfind("/", 0, at)) > 0:
            index = self.shards.get(key[:at])
            number = None if index is None else index.find(key[at + 1 :])
            if index is not None and number is not None:
                return index, number
        raise DecodeError(f"there is no {key!r} in the shards")

    def path(self, key: str) -> Path:
        """The shard that holds an image."""
        return self.find(key)[0].path

    def raw(self, key: str) -> bytes:
        return self.member(*self.find(key))

    def member(self, index: TarIndex, number: int) -> bytes:
        """The bytes of a file; DecodeError if they are not all there."""
        offset, size = int(index.offsets[number]), int(index.sizes[number])
        if offset == SPARSE:
            raise DecodeError("stored as a sparse file; pack the shard again without --sparse")
        if index.is_cut(number):
            raise DecodeError(f"cut off: {index.path.name} ends after {max(0, index.length - offset)} of {size} bytes")
        if size > LARGEST_MEMBER:
            raise DecodeError(f"{size / 1e9:.1f} GB are too much for an image (limit {LARGEST_MEMBER / 1e9:.1f} GB)")
        try:
            handle = self._files.get(index.path, lambda: _Handle(index))
            data = os.pread(handle.number, size, offset)
            while len(data) < size and (more := os.pread(handle.number, size - len(data), offset + len(data))):
                data += more
        except OSError as error:
            raise DecodeError(f"cannot read {index.path}: {error.strerror}") from error
        if len(data) < size:
            raise DecodeError(f"cut off: {index.path.name} became shorter while it was in use")
        return data

    def stamp(self, key: str) -> str:
        index, number = self.find(key)
        place = f"{index.offsets[number]}|{index.sizes[number]}"
        return f"{index.stamp}|{place}"

    def images(self) -> Iterator[tuple[str, str]]:
        """(name for people, key) of everything that looks like an image."""
        for shard, index in self.shards.items():
            for name in index.all_names():
                if is_image_name(name):
                    yield f"{index.path}:{name}", f"{shard}/{name}"

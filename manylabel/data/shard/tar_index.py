"""Where each file of a tar shard is: found by one walk over its headers, and kept (tar_index_cache.py)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.data.file_stamp import file_stamp
from manylabel.data.shard.tar_header import Member, TarWalk
from manylabel.data.shard.tar_index_cache import recall, remember
from manylabel.error import DataError


@dataclass(frozen=True, eq=False)
class TarIndex:
    """The files of one shard, in the order of the shard. Arrays, because a dict of millions of names is ten times larger."""

    path: Path
    length: int  # of the shard in bytes, when it was walked
    changed: int  # time of its last change then, in ns
    inode: int
    stamp: str  # of the shard then
    flaw: str  # what is wrong with its end; '' = nothing
    names: np.ndarray  # uint8, all names in a row
    ends: np.ndarray  # [n] int64, where each name ends
    offsets: np.ndarray  # [n] int64, or SPARSE
    sizes: np.ndarray  # [n] int64
    hashes: np.ndarray  # [n] uint64 of the names, ascending
    order: np.ndarray  # [n] int64, the file that each hash belongs to

    def __len__(self) -> int:
        return len(self.ends)

    def name(self, i: int) -> str:
        return self.names[self.ends[i - 1] if i else 0 : self.ends[i]].tobytes().decode()

    def all_names(self) -> Iterator[str]:
        text, start = self.names.tobytes(), 0
        for end in self.ends.tolist():
            yield text[start:end].decode()
            start = end

    def is_cut(self, i: int) -> bool:
        """Whether a file reaches beyond the end of the shard."""
        return int(self.offsets[i]) + int(self.sizes[i]) > self.length

    def find(self, name: str) -> int | None:
        """The number of a file."""
        wanted = np.uint64(_hash(name.encode("utf-8", "backslashreplace")))  # an int would turn all hashes into floats
        at = int(np.searchsorted(self.hashes, wanted))
        while at < len(self) and self.hashes[at] == wanted:
            if self.name(int(self.order[at])) == name:
                return int(self.order[at])
            at += 1
        return None


def open_index(path: Path) -> TarIndex:
    """The index of a shard, from the cache or from the shard itself."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    try:
        facts = os.fstat(handle)
        stamp = file_stamp(path, facts)
        about = (path, facts.st_size, facts.st_mtime_ns, facts.st_ino, stamp)
        kept = recall(path, stamp)
        if kept is not None:
            return TarIndex(*about, **kept)
        found = _walk(handle, path)
        remember(path, stamp, found)
        return TarIndex(*about, **found)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(handle)


def first_names(path: Path, count: int) -> list[str]:
    """A look at the first files of what may be a shard."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return [plain_name(member.name) for member in islice(TarWalk(handle, path), count)]
    finally:
        os.close(handle)


def _walk(handle: int, path: Path) -> dict[str, Any]:
    walk = TarWalk(handle, path)
    members = [Member(name, m.offset, m.size) for m in walk if (name := plain_name(m.name))]
    names = [member.name.encode("utf-8", "backslashreplace") for member in members]
    hashes = np.fromiter(map(_hash, names), np.uint64, len(names))
    order = np.argsort(hashes, kind="stable")
    _refuse_repeated(path, names, hashes, order)
    return {
        "flaw": walk.flaw,
        "names": np.frombuffer(b"".join(names), np.uint8),
        "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
        "offsets": np.array([member.offset for member in members], np.int64),
        "sizes": np.array([member.size for member in members], np.int64),
        "hashes": hashes[order],
        "order": order,
    }


def plain_name(name: str) -> str:
    """Without './' before it; '' for what systems leave behind ('.DS_Store', '._photo.jpg', '__MACOSX/…')."""
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    hidden = name.rpartition("/")[2].startswith(".") or name.startswith("__MACOSX/")
    return "" if hidden else name


def _refuse_repeated(path: Path, names: list[bytes], hashes: np.ndarray, order: np.ndarray) -> None:
    ranked = hashes[order]
    for at in np.flatnonzero(ranked[1:] == ranked[:-1]).tolist():
        same = [names[i] for i in order[at : at + 2]]
        if same[0] == same[1]:
            raise DataError(
                f"{path}: member {same[0].decode()!r} is in it twice; pack the shard again with one of them"
            )


def _hash(name: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())

"""Where each file of a tar shard is: found by one walk over its headers, kept in the cache folder.

<cache folder>/shards/<path>.npz    valid as long as the shard has the same size and time of change
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from manylabel.atomic import write_bytes
from manylabel.cache_folder import cache_folder
from manylabel.data.shard.tar_header import Member, TarWalk
from manylabel.error import DataError

FORMAT = 1
ARRAYS = ("names", "ends", "offsets", "sizes", "hashes", "order")


@dataclass(frozen=True, eq=False)
class TarIndex:
    """The files of one shard, in the order of the shard. Arrays, because a dict of millions of names is ten times larger."""

    path: Path
    length: int  # of the shard in bytes, when it was walked
    changed: int  # time of its last change then, in ns
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
        kept = _kept_at(path)
        index = _recall(kept, path, facts.st_size, facts.st_mtime_ns)
        if index is None:
            index = _walk(handle, path, facts.st_size, facts.st_mtime_ns)
            with suppress(OSError):  # it only saves time
                write_bytes(kept, _packed(index))
        return index
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


def _walk(handle: int, path: Path, length: int, changed: int) -> TarIndex:
    walk = TarWalk(handle, path)
    members = [Member(name, m.offset, m.size) for m in walk if (name := plain_name(m.name))]
    names = [member.name.encode("utf-8", "backslashreplace") for member in members]
    hashes = np.fromiter(map(_hash, names), np.uint64, len(names))
    order = np.argsort(hashes, kind="stable")
    _refuse_repeated(path, names, hashes, order)
    return TarIndex(
        path,
        length,
        changed,
        walk.flaw,
        names=np.frombuffer(b"".join(names), np.uint8),
        ends=np.cumsum([len(name) for name in names], dtype=np.int64),
        offsets=np.array([member.offset for member in members], np.int64),
        sizes=np.array([member.size for member in members], np.int64),
        hashes=hashes[order],
        order=order,
    )


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


# --- the cache --------------------------------------------------------------------------------------------------


def _kept_at(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:32]
    return cache_folder() / "shards" / f"{name}.npz"


def _packed(index: TarIndex) -> bytes:
    facts = {"format": FORMAT, "length": index.length, "changed": index.changed, "flaw": index.flaw}
    file = io.BytesIO()
    np.savez(
        file,
        facts=np.frombuffer(json.dumps(facts).encode(), np.uint8),
        **{name: getattr(index, name) for name in ARRAYS},
    )
    return file.getvalue()


def _recall(kept: Path, path: Path, length: int, changed: int) -> TarIndex | None:
    """What was kept about this very shard; None when there is nothing, or it is damaged."""
    try:
        with np.load(kept, allow_pickle=False) as file:
            facts = json.loads(file["facts"].tobytes())
            if (facts["format"], facts["length"], facts["changed"]) != (FORMAT, length, changed):
                return None
            arrays = {name: file[name] for name in ARRAYS}
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    count = len(arrays["ends"])
    fits = all(len(arrays[name]) == count for name in ARRAYS[1:])
    if not fits or (count and int(arrays["ends"][-1]) != len(arrays["names"])):
        return None
    return TarIndex(path, length, changed, str(facts["flaw"]), **arrays)

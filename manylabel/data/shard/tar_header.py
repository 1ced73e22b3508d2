"""The files of a tar, one after the other, without reading what they hold: Python's tarfile reads the headers, and what
it passes over in silence (an end without its mark, a cut, damage in the middle) is told.

A name is a name here, never a place on disk.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from manylabel.error import DataError

BLOCK = tarfile.BLOCKSIZE
TEXT = ("utf-8", "backslashreplace")
LONGEST_EXTRA = 1 << 20  # bytes of a long name or a pax header
LONGEST_PADDING = 1 << 20  # zeros that may stand between two archives in one file
LARGEST_SIZE = (1 << 63) - 1  # bytes of anything: what file systems and int64 hold
SPARSE = -1  # offset of a file that is not stored in one piece
ODD = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError)  # what damaged headers provoke


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside: where its bytes are. They may reach beyond the end of a shard that was cut off."""

    name: str
    offset: int
    size: int


class _Headers:
    """The file as tarfile reads it: no more than a header at once, and whether one was cut off."""

    def __init__(self, file: BinaryIO) -> None:
        self.tell, self.seek, self._file, self.short = file.tell, file.seek, file, False

    def read(self, size: int) -> bytes:
        if size > LONGEST_EXTRA + BLOCK:
            raise ValueError(f"a header of {size} bytes")
        data = self._file.read(size)
        self.short |= len(data) < size
        return data


class TarWalk:
    """Iterate once over the plain files; `flaw` then says what is wrong with the end of the archive, if anything."""

    def __init__(self, handle: int, path: Path) -> None:
        self.handle = handle
        self.path = path
        self.length = os.fstat(handle).st_size
        self.flaw = ""

    def __iter__(self) -> Iterator[Member]:
        last, position = "", 0
        with open(self.handle, "rb", closefd=False) as file:
            tar: Any = tarfile.TarFile(fileobj=io.BytesIO(bytes(2 * BLOCK)), encoding=TEXT[0], errors=TEXT[1])
            tar.fileobj = _Headers(file)
            while not self.flaw:
                file.seek(position)
                try:
                    info = tarfile.TarInfo.fromtarfile(tar)
                except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
                    found = self._next_archive(file, position)
                    if found is None:
                        return
                    position = found
                    continue
                except (tarfile.EmptyHeaderError, tarfile.TruncatedHeaderError):  # type: ignore[attr-defined]
                    where = f"after member {last!r}" if last else "at once"
                    self.flaw = f"it ends {where} without the mark of an end, so it may be cut off"
                    return
                except ODD:
                    if not tar.fileobj.short:
                        raise self._damaged(position, last) from None
                    self.flaw = f"it is cut off in the header after {last!r}"
                    return
                if not 0 <= info.size <= LARGEST_SIZE:
                    raise self._damaged(position, last)
                last, stored = info.name, tar.offset - info.offset_data
                if info.isreg():
                    yield (
                        Member(info.name, SPARSE, 0)
                        if info.issparse()
                        else Member(info.name, info.offset_data, info.size)
                    )
                if stored and info.offset_data + (stored if info.issparse() else info.size) > self.length:
                    there = max(0, self.length - info.offset_data)
                    self.flaw = f"it is cut off in member {last!r}, {there} of {info.size} bytes"
                position = tar.offset

    def _damaged(self, position: int, last: str) -> DataError:
        if position == 0:
            return DataError(f"{self.path} is no tar file; name shards in plain tar format")
        return DataError(
            f"{self.path} is damaged at byte {position}, after member {last!r}; fetch or pack the shard again"
        )

    def _next_archive(self, file: BinaryIO, position: int) -> int | None:
        """Where another archive begins behind the end of this one ('cat a.tar b.tar'); None where none does."""
        file.seek(position)
        rest = file.read(LONGEST_PADDING)
        visible = re.search(rb"[^\0]", rest)
        if visible is None:
            return None
        start = visible.start() // BLOCK * BLOCK
        try:
            tarfile.TarInfo.frombuf(rest[start : start + BLOCK], *TEXT)
        except ODD:  # something else behind the end, which tar passes over, too
            return None
        return position + start

"""The headers of a tar file, one after the other, without reading what is between them.

ustar, GNU (long names, sizes in binary, sparse) and pax. A name is a name here, never a place on disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from manylabel.error import DataError

BLOCK = 512
FILES = b"0\x007"  # types that are plain files
WITHOUT_DATA = b"123456"  # links, devices, folders, pipes
ABOUT_THE_NEXT = b"xXLKg"  # pax headers, long names
LONGEST_EXTRA = 1 << 20  # bytes of a long name or a pax header
LONGEST_PADDING = 1 << 20  # zeros that may stand between two archives in one file
LARGEST_SIZE = (1 << 63) - 1  # bytes of anything: what file systems and int64 hold
SPARSE = -1  # offset of a file that is not stored in one piece


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside: where its bytes are. They may reach beyond the end of a shard that was cut off."""

    name: str
    offset: int
    size: int


class TarWalk:
    """Iterate once over the plain files; `flaw` then says what is wrong with the end of the archive, if anything."""

    def __init__(self, handle: int, path: Path) -> None:
        self.handle = handle
        self.path = path
        self.length = os.fstat(handle).st_size
        self.flaw = ""
        self._last = ""  # member that was seen last, for messages

    def __iter__(self) -> Iterator[Member]:  # noqa: C901 - one step for each kind of header, in the order of the bytes
        position: int | None = 0
        extra: dict[str, str] = {}  # what an extended header says about the next member
        while position is not None:
            header = os.pread(self.handle, BLOCK, position)
            if len(header) < BLOCK:
                where = f"after member {self._last!r}" if self._last else "at once"
                self.flaw = f"it ends {where} without the mark of an end, so it may be cut off"
                return
            if not any(header):
                position = self._next_archive(position)
                continue
            kind, size = self._checked(header, position)
            data = position + BLOCK
            if kind in b"xXL":
                extra |= self._extended(kind, data, size)
            elif kind == b"S":
                data = self._after_sparse_map(header, data)
            if kind in WITHOUT_DATA:
                size = 0
            elif "size" in extra and kind not in ABOUT_THE_NEXT:
                size = self._plain_number(extra["size"], position)
            if kind not in ABOUT_THE_NEXT:
                name = extra.get("path") or _name(header)
                if kind in FILES + b"S" and not name.endswith("/"):
                    sparse = kind == b"S" or "GNU.sparse.major" in extra or "GNU.sparse.map" in extra
                    yield Member(name, SPARSE if sparse else data, size)
                self._last, extra = name, {}
            if data + size > self.length:
                what = f"member {self._last!r}" if kind not in ABOUT_THE_NEXT else f"the header after {self._last!r}"
                self.flaw = f"it is cut off in {what}, {max(0, self.length - data)} of {size} bytes"
                return
            position = data + -(-size // BLOCK) * BLOCK

    def _checked(self, header: bytes, position: int) -> tuple[bytes, int]:
        """(type, size) of a header whose checksum is right."""
        try:
            told = _number(header[148:156])
            size = _number(header[124:136])
        except ValueError:
            told = size = -1
        plain = sum(header) - sum(header[148:156]) + 8 * 32
        if size < 0 or (told != plain and told != plain - _signed(header)):
            self._refuse(position)
        return header[156:157], size

    def _refuse(self, position: int) -> NoReturn:
        if position == 0:
            raise DataError(f"{self.path} is no tar file; name shards in plain tar format")
        raise DataError(
            f"{self.path} is damaged at byte {position}, after member {self._last!r}; fetch or pack the shard again"
        )

    def _next_archive(self, position: int) -> int | None:
        """Where another archive begins behind the end of this one ('cat a.tar b.tar'); None where none does."""
        rest = os.pread(self.handle, LONGEST_PADDING, position)
        visible = re.search(rb"[^\0]", rest)
        if visible is None:
            return None
        found = position + visible.start() // BLOCK * BLOCK
        try:
            self._checked(os.pread(self.handle, BLOCK, found).ljust(BLOCK, b"\0"), found)
        except DataError:  # something else behind the end, which tar passes over, too
            return None
        return found

    def _extended(self, kind: bytes, offset: int, size: int) -> dict[str, str]:
        if size > LONGEST_EXTRA:
            self._refuse(offset - BLOCK)
        if offset + size > self.length:  # cut off: the walk ends here
            return {}
        data = os.pread(self.handle, size, offset)
        if kind == b"L":
            return {"path": _text(data.split(b"\0")[0])}
        try:
            return dict(_pax_records(data))
        except ValueError:
            self._refuse(offset - BLOCK)

    def _after_sparse_map(self, header: bytes, offset: int) -> int:
        """Old GNU sparse files have more headers between the first and the data."""
        more = header[482]
        while more:
            block = os.pread(self.handle, BLOCK, offset)
            offset += BLOCK
            more = block[504] if len(block) == BLOCK else 0
        return offset

    def _plain_number(self, text: str, position: int) -> int:
        if not re.fullmatch(r"\d{1,18}", text):
            self._refuse(position)
        return int(text)


def _signed(header: bytes) -> int:
    """How much smaller the sum is that old writers made, of signed bytes."""
    return 256 * sum(byte > 127 for byte in header[:148] + header[156:])


def _name(header: bytes) -> str:
    name, prefix = header[:100].split(b"\0")[0], header[345:500].split(b"\0")[0]
    if prefix and header[257:263] == b"ustar\0":  # GNU keeps other things there
        name = prefix + b"/" + name
    return _text(name)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _number(field: bytes) -> int:
    """Octal digits, or binary where the first bit is set."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:])
        if number > LARGEST_SIZE:
            raise ValueError
        return number
    digits = field.split(b"\0")[0].strip()
    if not re.fullmatch(rb"[0-7]*", digits):
        raise ValueError
    return int(digits or b"0", 8)


def _pax_records(data: bytes) -> Iterator[tuple[str, str]]:
    """'25 path=name\\n' and so on; the number is the length of the whole record."""
    at = 0
    while at < len(data) and data[at]:
        head = re.compile(rb"(\d{1,8}) ([^=\n]+)=").match(data, at)
        end = at + int(head[1]) if head else 0
        if head is None or not head.end() < end <= len(data) or data[end - 1 : end] != b"\n":
            raise ValueError
        yield _text(head[2]), _text(data[head.end() : end - 1])
        at = end

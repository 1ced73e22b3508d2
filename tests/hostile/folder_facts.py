"""What a folder holds, byte for byte: so that it can be said afterwards what was lost, changed or left over."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from manylabel.storage.receipt import SUFFIX

BLOCK = 1 << 20  # bytes
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFCHR: "device",
}


@dataclass(frozen=True)
class Fact:
    """One entry of a folder."""

    kind: str
    mode: int
    content: str  # sha256 of a file, target of a link, number of a device
    entry: tuple[int, int]  # inode of what is no plain file: a pipe that was replaced by another is another


Facts = dict[str, Fact]


def facts_of(root: Path) -> Facts:
    """Every entry below `root` by its path (undecodable bytes as Python writes them); links are not followed."""
    found: Facts = {}
    _walk(os.fsencode(root), b"", found)
    return found


def _walk(folder: bytes, before: bytes, found: Facts) -> None:
    for entry in os.scandir(folder):
        name = os.path.join(before, entry.name)
        info = entry.stat(follow_symlinks=False)
        kind = KINDS.get(stat.S_IFMT(info.st_mode), "other")
        content = ""
        if kind == "file":
            content = _sha256(entry.path)
        elif kind == "link":
            content = os.fsdecode(os.readlink(entry.path))
        elif kind == "device":
            content = str(info.st_rdev)
        special = kind in ("pipe", "device")
        entry_id = (info.st_ino, info.st_dev) if special else (0, 0)
        found[os.fsdecode(name)] = Fact(kind, stat.S_IMODE(info.st_mode), content, entry_id)
        if kind == "folder":
            _walk(entry.path, name, found)


def _sha256(path: bytes) -> str:
    """Of size and what is no zero; holes are passed over, for a sparse file may have 10^12 bytes."""
    with open(path, "rb", buffering=0) as file:
        digest = hashlib.sha256(b"%d\n" % os.fstat(file.fileno()).st_size)
        place = 0
        while (data := _data_after(file.fileno(), place)) is not None:
            begin = data - data % BLOCK
            block = os.pread(file.fileno(), BLOCK, begin)
            if block.strip(b"\0"):
                digest.update(b"%d %d\n" % (begin, len(block)) + block)
            place = begin + BLOCK
        return digest.hexdigest()


def _data_after(file: int, place: int) -> int | None:
    try:
        return os.lseek(file, place, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole, or the end
            return None
        raise


def lost(before: Facts, after: Facts, allowed: Iterable[str]) -> list[str]:
    """What was there and is not, or is another thing now; `allowed` are patterns of what might be written."""
    said = []
    for path, fact in before.items():
        if allowed_by(path, allowed):
            continue
        now = after.get(path)
        if now is None:
            said.append(f"{path} is gone")
        elif now.kind != fact.kind:
            said.append(f"{path} was a {fact.kind} and is a {now.kind}")
        elif now.content != fact.content or now.entry != fact.entry:
            said.append(f"{path} has changed")
        elif now.mode != fact.mode:
            said.append(f"{path} had mode {fact.mode:o} and has {now.mode:o}")
    return said


def left_over(before: Facts, after: Facts, allowed: Iterable[str]) -> list[str]:
    """What is new and was not asked for; half-written files are never asked for."""
    allowed = list(allowed)
    new = [path for path in after if path not in before]
    return [path for path in new if path.endswith(".partial") or not allowed_by(path, allowed)]


def allowed_by(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches; `folder/**` means the folder, too, and the folders above what is allowed are. The receipt
    of a file that is allowed may be there, too."""
    folder, name = os.path.split(path)
    if name.startswith(".") and name.endswith(SUFFIX):
        path = os.path.join(folder, name[1 : -len(SUFFIX)])
    for pattern in patterns:
        if pattern.endswith("/**") and (path == pattern[:-3] or path.startswith(pattern[:-2])):
            return True
        if fnmatch(path, pattern) or pattern.startswith(f"{path}/"):
            return True
    return False

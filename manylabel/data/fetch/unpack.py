"""Archives into folders, safely: nothing outside the folder, no links, no more bytes than the catalogue says."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO

from manylabel.data.fetch.catalogue import SLACK, Archive
from manylabel.data.fetch.checksum import BLOCK
from manylabel.error import DataError

MOST_FILES = 2_000_000


@dataclass(frozen=True)
class _Entry:
    name: str
    kind: str  # 'file', 'folder', or what else it is
    open: Callable[[], IO[bytes]]


def unpack(
    path: Path, archive: Archive, out: Path, *, splits: tuple[str, ...] = (), advance: Callable[[int], None]
) -> int:
    """Unpack `path` below `out` and return the number of files. What is there already is written anew."""
    files, empty, room = 0, True, int(archive.unpacked * SLACK)
    safe: set[Path] = set()  # parents that are known to lie inside
    with _failures_named(path), _entries(path) as entries:
        for entry in entries:
            empty = False
            target = _target(path, entry, archive.folder, out)
            if target is None or entry.kind == "folder" or _left_out(entry.name, archive, splits):
                continue
            _make_parent(path, target.parent, out, safe)
            room -= _write(path, entry, target, room, advance)
            files += 1
            if files > MOST_FILES:
                raise DataError(f"{path} holds more than {MOST_FILES:,} files; it is not the archive it should be")
        if empty:  # also what a tar looks like whose first block is lost
            raise tarfile.ReadError("it is empty")
    _sync()
    return files


def _target(path: Path, entry: _Entry, folder: str, out: Path) -> Path | None:
    """Where an entry goes; None for the archive's own top. Names that lead elsewhere are refused, not mended."""
    name = PurePosixPath(entry.name.replace("\\", "/"))  # zips made on Windows
    if name.is_absolute() or ".." in name.parts or ":" in entry.name.split("/")[0] or "\0" in entry.name:
        raise DataError(f"{path} holds {entry.name!r}, which would be written outside {out}; nothing of it is used")
    if entry.kind not in ("file", "folder"):
        raise DataError(f"{path} holds {entry.name!r}, a {entry.kind}; only files and folders are unpacked")
    if not name.parts:
        return None
    inside = name.parts if not folder or name.parts[0] == folder else (folder, *name.parts)
    return out.joinpath(*inside)


def _left_out(name: str, archive: Archive, splits: tuple[str, ...]) -> bool:
    return any(split not in splits and fnmatch(name, pattern) for split, pattern in archive.only) if splits else False


def _make_parent(path: Path, parent: Path, out: Path, safe: set[Path]) -> None:
    if parent in safe:
        return
    parent.mkdir(parents=True, exist_ok=True)
    if not parent.resolve().is_relative_to(out.resolve()):  # a link that was there before us
        raise DataError(f"{parent} leads outside {out}; {path} is not unpacked through it")
    safe.add(parent)


def _write(path: Path, entry: _Entry, target: Path, room: int, advance: Callable[[int], None]) -> int:
    """Bytes written; counted as they come, since headers can lie."""
    written = 0
    if target.is_symlink():
        raise DataError(f"{target} is a link; {path} is not unpacked through it")
    with entry.open() as source, open(target, "wb") as file:
        while block := source.read(BLOCK):
            written += len(block)
            if written > room:
                raise DataError(f"{path} unpacks to more than the catalogue says; stopped at {entry.name!r}")
            file.write(block)
            advance(len(block))
    return written


@contextmanager
def _entries(path: Path) -> Iterator[Iterator[_Entry]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield (_zip_entry(archive, info) for info in archive.infolist())
    else:
        with tarfile.open(path, "r:*") as tar:
            yield (_tar_entry(tar, member) for member in tar)


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    mode = info.external_attr >> 16  # zero when the zip was not made on Unix
    if info.is_dir() or info.filename.endswith("\\"):
        kind = "folder"
    elif stat.S_ISLNK(mode):
        kind = "link"
    else:
        kind = "file" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else "special file"
    return _Entry(info.filename, kind, lambda: archive.open(info))


def _tar_entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Entry:
    if member.isfile():
        kind = "file"
    elif member.isdir():
        kind = "folder"
    else:
        kind = "link" if member.issym() or member.islnk() else "special file"

    def content() -> IO[bytes]:
        file = tar.extractfile(member)
        if file is None:  # cannot be: it is a regular file
            raise tarfile.ReadError(f"{member.name} has no content")
        return file

    return _Entry(member.name, kind, content)


@contextmanager
def _failures_named(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); delete it and fetch again") from None
    except OSError as error:
        raise DataError(f"cannot unpack {path}: {error.filename or ''} {error.strerror or error}") from None


def _sync() -> None:
    """The note that an archive is unpacked must not reach the disk before its files do."""
    if hasattr(os, "sync"):
        os.sync()

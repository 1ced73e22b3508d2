"""Files that are either the old one or the new one, never half of each: temporary file, fsync, rename."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manylabel.runtime.system_error import OF_WRITING
from manylabel.storage.json_text import to_json

TEMPORARY = ".partial"
LEFTOVER = re.compile(r".*\.\d+(-[0-9a-f]{8})?\.partial", re.DOTALL)  # of this version and of earlier ones
LONGEST_NAME = 200  # of the bytes of a name that go into the temporary one; file systems allow 255
PROBE = 1 << 16
OF_RUST = re.compile(r"\(os error (\d+)\)")  # how libraries in Rust end their messages, safetensors among them
UMASK = os.umask(0)  # it can only be read by setting it
os.umask(UMASK)


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Give a temporary path to write to; when the block ends well it becomes `path`, otherwise it is removed.

    Its permissions are `mode`, or what the umask leaves. An OSError of writing names `path`, also where a library
    that writes only said that it failed.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:  # from here on: a Ctrl-C may come as soon as the file is there
        _create(temporary, path)
        yield temporary
        _finish(temporary, 0o666 & ~UMASK if mode is None else mode)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno in OF_WRITING or error.filename in (temporary, str(temporary)):
            error.filename = str(path)
        elif error.errno is None:
            _raise_refusal(temporary, path, error)
        raise
    except Exception as error:
        _raise_refusal(temporary, path, error)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A name beside `path` that nobody could have put a link at."""
    start = os.fsdecode(os.fsencode(path.name)[:LONGEST_NAME])
    return path.with_name(f"{start}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")


def _create(temporary: Path, path: Path) -> None:
    """A new empty file, never another's, that will become `path`."""
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        error.filename = str(path)
        raise


def _finish(temporary: Path, mode: int) -> None:
    handle = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
        os.fchmod(handle, mode)  # some writers make files that only their owner can read
    finally:
        os.close(handle)


def _raise_refusal(temporary: Path, path: Path, error: Exception) -> None:
    """A library says in words of its own that it could not write; ask the disk whether that was the cause."""
    if number := OF_RUST.search(str(error)):
        code = int(number[1])
        raise OSError(code, os.strerror(code), str(path)) from error
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        left = PROBE
        while left:
            left -= os.write(handle, bytes(left))
        os.fsync(handle)
    except OSError as refused:
        refused.filename = str(path)
        raise refused from error
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; not every file system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def append_text(path: Path, text: str) -> None:
    """At the end of a file of ours, which may not be a link to one of somebody else's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(path, flags, 0o666), "ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """As UTF-8; bytes of a file name that are no UTF-8 become \\udcff and the like."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, to_json(value) + "\n")


def sweep(folder: Path) -> list[Path]:
    """Remove what a killed process left half-written in this folder; returns what was removed."""
    names = os.listdir(folder) if folder.is_dir() else []
    stale = [folder / name for name in sorted(names) if LEFTOVER.fullmatch(name)]
    stale = [path for path in stale if path.is_symlink() or path.is_file()]
    for path in stale:
        path.unlink(missing_ok=True)
    return stale


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

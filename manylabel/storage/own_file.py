"""Files that we keep for ourselves, where anything may lie by now: only regular files are opened, never through a link.

What is something else under such a name (a link, a pipe, a socket, a folder) counts as not there, and makes way for
the file that belongs there. A link is removed, not what it points to; a folder with something in it is moved aside.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from manylabel.storage.plain_file import read_at_most

LARGEST = 1 << 28  # bytes of a file that is read as a whole
CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def is_plain_file(path: Path) -> bool:
    """Whether a regular file is there, not a link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def open_own(path: Path, *, writable: bool = False, create: bool = False) -> BinaryIO:
    """The file itself; OSError when there is none, or something else."""
    handle = own_handle(path, (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0))
    return os.fdopen(handle, "r+b" if writable else "rb")


def own_handle(path: Path, flags: int) -> int:
    """The same as a number, opened with these flags."""
    handle = os.open(path, flags | CAREFUL | getattr(os, "O_BINARY", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def new_own(path: Path) -> BinaryIO:
    """A new file in place of whatever was there. Who still reads the old one keeps it."""
    make_way(path)
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | CAREFUL | getattr(os, "O_BINARY", 0), 0o666)
    return os.fdopen(handle, "w+b")


def read_own(path: Path, most: int = LARGEST) -> bytes:
    """All of it; OSError when it cannot be read, or is larger than anything that we write."""
    with open_own(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, "too large", str(path))
        return read_at_most(file, most)


def read_own_json(path: Path, most: int = LARGEST) -> dict[str, Any]:
    """A JSON object; OSError or ValueError when there is none."""
    try:
        value = json.loads(read_own(path, most))
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds no JSON object")
    return value


def make_way(path: Path) -> None:
    """Nothing but a regular file is left under this name."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        _aside(path)
    elif not stat.S_ISREG(kind):
        path.unlink(missing_ok=True)


def own_folder(path: Path) -> None:
    """A folder with this name, and no link to one. Links above it are followed: people move their caches like that."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or (os.path.lexists(path) and not path.is_dir()):
        path.unlink(missing_ok=True)
    path.mkdir(exist_ok=True)


def _aside(path: Path) -> None:
    try:
        path.rmdir()  # nothing in it
    except OSError:
        names = (path.with_name(f"{path.name}.aside-{number}") for number in itertools.count(1))
        path.rename(next(name for name in names if not os.path.lexists(name)))

"""The bytes of a file from anywhere: a regular file, of a size that its kind can have."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from manylabel.error import DataError, ManylabelError

KB, MB = 1_000, 1_000_000


def open_plain(path: Path, error: type[ManylabelError] = DataError) -> BinaryIO:
    """Open for reading; a pipe or a device, which could wait for ever or never end, is refused unread."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as reason:  # ValueError: a NUL in the name
        raise error(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from reason
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error(f"{path} is a folder, a pipe or a device, not a file; name a file")
    return open(handle, "rb")


def read_bytes(path: Path, most: int, error: type[ManylabelError] = DataError) -> bytes:
    """The whole file, if it holds at most so many bytes."""
    with open_plain(path, error) as file:
        try:
            data = read_at_most(file, most + 1)
        except OSError as reason:
            raise error(f"cannot read {path}: {reason.strerror}") from reason
    if len(data) > most:
        raise error(f"{path} is larger than such a file can be ({in_words(most)}); is it the right one?")
    return data


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """So many bytes or all there are; `file.read(most)` would ask for the memory of so many before it looks."""
    step = max(
        os.fstat(file.fileno()).st_size + 1, 1 << 16
    )  # 0 is also said of files that a system makes as they are read
    blocks = []
    while most > 0 and (block := file.read(min(step, most))):
        blocks.append(block)
        most -= len(block)
    return b"".join(blocks)


def read_text(path: Path, most: int, error: type[ManylabelError] = DataError) -> str:
    """The whole file as text; a byte-order mark is dropped."""
    data = read_bytes(path, most, error)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        raise error(f"{path}, row {line}: not UTF-8 text; save the file with UTF-8 encoding") from None


def in_words(size: int) -> str:
    return f"{size // MB} MB" if size >= MB else f"{size // KB} kB"

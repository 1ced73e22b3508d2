"""Arrays from a .npz file: their sizes are taken from the headers, before anything is unpacked."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from manylabel.error import DataError, ManylabelError
from manylabel.storage.plain_file import KB, MB, open_plain

SPARE = 50 * MB  # bytes that any file may hold unpacked,
GROWTH = 20  # beside so many times its own size: labels that are nearly all absent are packed well
LARGEST_EMPTY = 1_000_000  # texts of no characters take no byte, and each of them an object
LONGEST_HEADER = 10 * KB
KINDS = "biufU"  # truth values, numbers, text; no objects, which are pickles


def read_npz(
    path: Path,
    names: Iterable[str] | None = None,
    error: type[ManylabelError] = DataError,
    *,
    advice: str = "",
    perhaps: Iterable[str] = (),
) -> dict[str, np.ndarray]:
    """The arrays by name, or those of `names`, each of which must be there, and of `perhaps`, which need not. `advice`:
    what to do where it is damaged."""
    then = f"; {advice}" if advice else ""
    with open_plain(path, error) as file:
        try:
            most = SPARE + GROWTH * path.stat().st_size
            with zipfile.ZipFile(file) as packed:
                entries = {one.filename.removesuffix(".npy"): one for one in packed.infolist()}
                wanted = list(entries) if names is None else [*names, *(name for name in perhaps if name in entries)]
                missing = [name for name in wanted if name not in entries]
                if missing:
                    raise ValueError(f"it has no {missing[0]}")
                if sum(entries[name].file_size for name in wanted) > most:
                    raise ValueError(f"it would take more than {most // MB} MB")
                return {name: _member(packed, entries[name], name) for name in wanted}
        except _BROKEN as reason:
            raise error(f"{path} cannot be read ({str(reason) or type(reason).__name__:.200}){then}") from reason


_BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,  # numpy takes a header that it cannot read for one of Python 2
)


def _member(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> np.ndarray:
    with packed.open(entry) as file:
        return _array(file, entry.file_size, name)


def read_npy(path: Path, error: type[ManylabelError] = DataError) -> np.ndarray:
    """The array of a .npy file."""
    with open_plain(path, error) as file:
        try:
            return _array(file, path.stat().st_size, "it")
        except _BROKEN as reason:
            raise error(f"{path} cannot be read ({str(reason) or type(reason).__name__:.200})") from reason


def _array(file: IO[bytes], length: int, name: str) -> np.ndarray:
    """One array, after its header has told no more bytes than there are."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} is of .npy version {version}")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_column, kind = read(file, max_header_size=LONGEST_HEADER)
    if kind.kind not in KINDS or kind.hasobject or any(side < 0 for side in shape):
        raise ValueError(f"{name} holds {kind} {shape}, not numbers or text")
    size = math.prod(shape) * kind.itemsize
    if size > length or (not size and math.prod(shape) > LARGEST_EMPTY):
        raise ValueError(f"{name} should have {shape} values, for which it is too short")
    data = file.read(size)
    if len(data) != size or file.read(1):
        raise ValueError(f"{name} is of another length than its header says")
    found = np.frombuffer(data, kind) if size else np.empty(shape, kind)
    return found.reshape(shape, order="F" if by_column else "C")

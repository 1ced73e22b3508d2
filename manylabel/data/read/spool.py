"""Byte strings by row, on disk: what does not come in order and would not fit in memory."""

from __future__ import annotations

import tempfile
from array import array

import numpy as np

from manylabel.error import DataError

BLOCK = 1 << 20  # bytes collected before they are written


class Spool:
    """Added in any order, asked for by row. The file has no name, so it is gone when the process ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="manylabel-", buffering=0)  # noqa: SIM115 (open as long as we live)
        self._waiting = bytearray()
        self._written = 0
        self._row = array("q")  # of each entry
        self._start = array("q")  # of each entry
        self._order: np.ndarray | None = None  # [entries] entries by row; None = not up to date
        self._first = np.zeros(1, np.int64)  # [rows + 1] where the entries of a row begin in the order

    def __len__(self) -> int:
        return len(self._row)

    def add(self, row: int, data: bytes) -> None:
        self._row.append(row)
        self._start.append(self._written + len(self._waiting))
        self._waiting += data
        self._order = None
        if len(self._waiting) >= BLOCK:
            self._flush()

    def of(self, row: int) -> list[bytes]:
        """What was added for this row, in that order."""
        order = self._sorted() if self._order is None else self._order
        if row + 1 >= len(self._first):
            return []
        return [self._read(entry) for entry in order[self._first[row] : self._first[row + 1]].tolist()]

    def _sorted(self) -> np.ndarray:
        self._flush()
        rows = np.array(self._row, np.int64)
        self._order = order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows) if len(rows) else np.zeros(0, np.int64)
        self._first = np.concatenate([[0], np.cumsum(counts)])
        return order

    def _flush(self) -> None:
        self._file.seek(self._written)
        rest = memoryview(bytes(self._waiting))
        try:
            while rest:  # a raw file may take less than it was given
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise DataError(
                f"cannot write a temporary file in {tempfile.gettempdir()}: {error.strerror}; make room there, "
                "or name another folder with the environment variable TMPDIR"
            ) from error
        self._written += len(self._waiting)
        self._waiting.clear()

    def _read(self, entry: int) -> bytes:
        start = self._start[entry]
        end = self._start[entry + 1] if entry + 1 < len(self._start) else self._written
        self._file.seek(start)
        return self._file.read(end - start)

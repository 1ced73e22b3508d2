"""What was found out about images, kept between checks: an interrupted check goes on, an unchanged image is not read again.

    <cache folder>/check/<data set>/whole.facts       the last finished check
                                    <process>.facts   records of one check that is running, or was interrupted

A record is FACTS with a checksum. Every check writes a file of its own, so that two at once do not meet.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import PIL

from manylabel.atomic import write_bytes
from manylabel.cache_folder import cache_folder
from manylabel.data.audit.image import FACTS
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.version import VERSION

FORMAT = 1
RECORD = np.dtype([("facts", FACTS), ("checksum", "<u4")])


class Journal:
    """Facts by the digest of an image's name; `get` gives them only while the stamp is still the same."""

    def __init__(self, table: Table) -> None:
        self.folder = cache_folder() / "check" / _fingerprint(table)
        self._own: Path | None = None
        self._old = sorted(self.folder.glob("*.facts")) if self.folder.is_dir() else []
        self._parts = [facts for path in self._old for facts in [_read(path)] if len(facts)]
        known = np.concatenate(self._parts) if self._parts else np.zeros(0, FACTS)
        self.known = known
        self._place = {stamp.tobytes(): i for i, stamp in enumerate(known["stamp"])}

    def get(self, stamp: np.ndarray) -> np.ndarray | None:
        """The facts of the image with this stamp, as a row of FACTS."""
        place = self._place.get(stamp.tobytes())
        return None if place is None else self.known[place]

    def add(self, facts: np.ndarray) -> None:
        """Write down what was found just now. [k] of FACTS"""
        if not len(facts):
            return
        self._parts.append(facts)
        try:
            if self._own is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._own = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}.facts"
            with open(self._own, "ab") as file:
                file.write(_sealed(facts))
        except OSError as error:
            raise DataError(
                f"cannot write to {self.folder} ({error.strerror or error}); free some space, or choose another place "
                "with the variable MANYLABEL_CACHE"
            ) from error

    def finish(self) -> None:
        """Gather the files of this check and of earlier ones into one; of an image that changed, only the last stays."""
        if self._own is None and len(self._old) < 2:
            return
        facts = np.concatenate(self._parts) if self._parts else np.zeros(0, FACTS)
        names = np.ascontiguousarray(facts["key"][::-1]).view("V16").ravel()
        _, last = np.unique(names, return_index=True)
        facts = facts[::-1][np.sort(last)][::-1]
        whole = self.folder / "whole.facts"
        with suppress(OSError):  # it only saves room and time; the files as they are will do
            write_bytes(whole, _sealed(facts))
            for path in {*self._old, *([self._own] if self._own else [])} - {whole}:
                path.unlink(missing_ok=True)


def _fingerprint(table: Table) -> str:
    """The same for the same images read by the same code; the stamps say whether one of them changed."""
    root = getattr(table.source, "root", None)
    what = {
        "format": FORMAT,
        "name": table.name,
        "source": type(table.source).__name__,
        "root": str(Path(root).resolve()) if root is not None else "",
        "code": [VERSION, PIL.__version__],  # who decodes and draws
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def _sealed(facts: np.ndarray) -> bytes:
    records = np.zeros(len(facts), RECORD)
    records["facts"] = facts
    records["checksum"] = [zlib.crc32(row.tobytes()) for row in facts]
    return records.tobytes()


def _read(path: Path) -> np.ndarray:
    """The records of a file that are whole; what a killed process or a bad disk left is passed over."""
    try:
        data = path.read_bytes()
    except OSError:
        return np.zeros(0, FACTS)
    records = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
    sums = np.fromiter((zlib.crc32(row.tobytes()) for row in records["facts"]), np.uint32, len(records))
    return records["facts"][sums == records["checksum"]]

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

from manylabel import console
from manylabel.cache_folder import cache_folder
from manylabel.data.audit.image import FACTS
from manylabel.data.table import Table
from manylabel.storage.atomic import write_bytes
from manylabel.storage.own_file import is_plain_file, make_way, open_own, own_folder, read_own
from manylabel.version import VERSION

FORMAT = 2
LARGEST = 1 << 34  # bytes of a journal
RECORD = np.dtype([("facts", FACTS), ("checksum", "<u4")])


class Journal:
    """Facts by the digest of an image's name; `get` gives them only while the stamp is still the same."""

    def __init__(self, table: Table) -> None:
        self.folder = cache_folder() / "check" / _fingerprint(table)
        self._own: Path | None = None
        self._full = False  # there is no room to write to
        self._old = [path for path in sorted(self.folder.glob("*.facts")) if is_plain_file(path)]
        self._parts = [facts for path in self._old for facts in [_read(path)] if len(facts)]
        known = np.concatenate(self._parts) if self._parts else np.zeros(0, FACTS)
        self.known = known
        self._place = {stamp.tobytes(): i for i, stamp in enumerate(known["stamp"])}

    def get(self, stamp: np.ndarray) -> np.ndarray | None:
        """The facts of the image with this stamp, as a row of FACTS."""
        place = self._place.get(stamp.tobytes())
        return None if place is None else self.known[place]

    def add(self, facts: np.ndarray) -> None:
        """Write down what was found just now, as long as there is room. [k] of FACTS"""
        if not len(facts):
            return
        self._parts.append(facts)
        if self._full:
            return
        try:
            if self._own is None:
                own_folder(self.folder)
                self._own = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}.facts"
            with open_own(self._own, writable=True, create=True) as file:
                file.seek(0, os.SEEK_END)
                file.write(_sealed(facts))
        except OSError as error:
            self._full = True
            console.warn(
                f"cannot write to {self.folder} ({error.strerror or error}), so what was found out about the images is not "
                "remembered for the next time; free some space, or choose another place with the variable MANYLABEL_CACHE"
            )

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
            make_way(whole)
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
        data = read_own(path, LARGEST)
    except OSError:
        return np.zeros(0, FACTS)
    records = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
    sums = np.fromiter((zlib.crc32(row.tobytes()) for row in records["facts"]), np.uint32, len(records))
    return records["facts"][sums == records["checksum"]]

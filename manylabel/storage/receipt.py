"""Receipts: how we know a file of ours that has no room for a mark, or that people edit afterwards.

Beside labels.csv a hidden .labels.csv.manylabel says which bytes we wrote. A file that is as its receipt says is ours;
without one, or after any change, it is the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manylabel.storage.atomic import LONGEST_NAME, replacing, sha256, write_json
from manylabel.storage.own_file import read_own_json
from manylabel.storage.plain_file import KB
from manylabel.version import VERSION

MADE_BY = f"manylabel {VERSION}"  # stands as "made_by" in every JSON object that we write
SUFFIX = ".manylabel"
LARGEST = 4 * KB


def receipt_of(path: Path) -> Path:
    """Where the receipt of this file is."""
    start = os.fsdecode(os.fsencode(path.name)[:LONGEST_NAME])
    return path.with_name(f".{start}{SUFFIX}")


def is_receipt(path: Path) -> bool:
    """By its name; what it says may be wrong."""
    return path.name.startswith(".") and path.name.endswith(SUFFIX)


@contextmanager
def replacing_ours(path: Path) -> Iterator[Path]:
    """As `replacing`; the file becomes ours, with a receipt."""
    with replacing(path) as temporary:
        yield temporary
        _leave_receipt(path, temporary)


def write_ours(path: Path, text: str) -> None:
    """A text as a file of ours, with a receipt; bytes of a file name that are no UTF-8 become \\udcff and the like."""
    with replacing_ours(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))


def has_receipt(path: Path) -> bool:
    """Whether this file is as we wrote it."""
    try:
        return sha256(path) in (_sums(receipt_of(path)) or ())
    except OSError:
        return False


def _leave_receipt(path: Path, written: Path) -> None:
    """Before the file has its name: it is never there without one. What others keep under this name stays."""
    receipt = receipt_of(path)
    if os.path.lexists(receipt) and _sums(receipt) is None:
        return
    older = [sha256(path)] if has_receipt(path) else []  # in case we are killed before the new one has taken its place
    write_json(receipt, {"made_by": MADE_BY, "sha256": [sha256(written), *older]})


def _sums(receipt: Path) -> list[str] | None:
    """The checksums in a receipt of ours; None where there is none."""
    try:
        said = read_own_json(receipt, LARGEST)
    except (OSError, ValueError):
        return None
    ours = set(said) == {"made_by", "sha256"} and str(said["made_by"]).startswith("manylabel ")
    sums = said["sha256"] if ours else None
    return sums if isinstance(sums, list) and all(isinstance(one, str) for one in sums) else None

"""Indices of tar shards, kept in the cache folder so that a shard is walked over once.

<cache folder>/shards/<path>.index    a line of facts as JSON, then the arrays one after the other

Valid as long as the shard has the same stamp; anything that does not fit is as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.cache_folder import cache_folder
from manylabel.storage.atomic import write_bytes
from manylabel.storage.own_file import make_way, read_own

FORMAT = 2
ARRAYS = {"ends": "<i8", "offsets": "<i8", "sizes": "<i8", "hashes": "<u8", "order": "<i8"}  # one number for each file
LARGEST = 1 << 34  # bytes: a hundred million files


def remember(path: Path, stamp: str, files: dict[str, Any]) -> None:
    """`files`: what an index says about the files of a shard (tar_index.py)."""
    body = b"".join([*(files[name].astype(kind).tobytes() for name, kind in ARRAYS.items()), files["names"].tobytes()])
    facts = {"format": FORMAT, "stamp": stamp, "flaw": files["flaw"], "files": len(files["ends"])}
    place = _place(path)
    with suppress(OSError):  # it only saves time
        place.parent.mkdir(parents=True, exist_ok=True)
        make_way(place)
        write_bytes(place, json.dumps(facts | {"crc32": zlib.crc32(body)}).encode() + b"\n" + body)


def recall(path: Path, stamp: str) -> dict[str, Any] | None:
    """What was kept about this very shard; None when there is nothing, or it is damaged."""
    try:
        line, _, body = read_own(_place(path), LARGEST).partition(b"\n")
        facts = json.loads(line)
        if (facts["format"], facts["stamp"], facts["crc32"]) != (FORMAT, stamp, zlib.crc32(body)):
            return None
        count = int(facts["files"])
        found = {name: np.frombuffer(body, kind, count, 8 * count * i) for i, (name, kind) in enumerate(ARRAYS.items())}
        names = np.frombuffer(body[8 * count * len(ARRAYS) :], np.uint8)
        return {"flaw": str(facts["flaw"]), "names": names, **found} if _fits(found, names) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _fits(found: dict[str, np.ndarray], names: np.ndarray) -> bool:
    """Whether the numbers are of one shard: names end one after the other, none within a character, and files are where
    files can be."""
    ends, order = found["ends"], found["order"]
    if not len(ends):
        return not len(names)
    if ends[-1] != len(names) or (np.diff(ends, prepend=0) < 0).any() or (np.sort(order) != np.arange(len(ends))).any():
        return False
    names.tobytes().decode()  # or ValueError
    inside = (names[ends[ends < len(names)]] & 0xC0) == 0x80
    return not inside.any() and not (found["offsets"] < 0).any() and not (found["sizes"] < 0).any()


def _place(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:32]
    return cache_folder() / "shards" / f"{name}.index"

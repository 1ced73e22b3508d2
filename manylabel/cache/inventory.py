"""What is in the feature cache: to look at, to check, to throw away. Everything in it can be computed again."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manylabel.cache.extract import alone
from manylabel.cache.key import FORMAT
from manylabel.cache.stage_file import StageFile
from manylabel.cache_folder import cache_folder
from manylabel.error import DataError
from manylabel.suggest import closest


@dataclass(frozen=True)
class Entry:
    """The features of one set of images, prepared in one way."""

    folder: Path
    facts: dict[str, Any]
    files: tuple[StageFile, ...]
    bytes: int
    used: float  # seconds since 1970
    problems: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def complete(self) -> bool:
        return not self.problems and bool(self.files) and all(file.complete for file in self.files)

    @property
    def view(self) -> int:
        """Number of the augmented view; 0 for the images as they are."""
        return int((self.facts.get("view") or {}).get("number", 0))

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "folder": str(self.folder),
            "backbone": self.facts.get("backbone"),
            "data": self.facts.get("table"),
            "images": self.facts.get("images"),
            "view": self.view,
            "dtype": self.facts.get("dtype"),
            "stages": {
                file.name: {"shape": list(file.shape), "done": file.done, "rounding": file.rounding}
                for file in self.files
            },
            "bytes": self.bytes,
            "used": self.used,
            "complete": self.complete,
            "problems": list(self.problems),
        }


def entries() -> list[Entry]:
    """All that is there, the one used last first."""
    place = cache_folder() / "features"
    found = [_entry(folder) for folder in place.iterdir() if folder.is_dir()] if place.is_dir() else []
    return sorted(found, key=lambda entry: (-entry.used, entry.key))


def _entry(folder: Path) -> Entry:
    problems = []
    try:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            facts, problems = {}, ["written by another version, which is not read any more"]
    except (OSError, ValueError):
        facts, problems = {}, ["its facts.json is missing or damaged"]
    files = []
    for path in sorted(folder.glob("*.bin")):
        file = StageFile.find(folder, path.stem)
        if file is None and not problems:
            problems.append(f"{path.name} does not belong to anything")
        elif file is not None:
            files.append(file)
    sizes = [path.stat().st_size for path in folder.iterdir() if path.is_file()]
    lock = folder / "lock"
    used = lock.stat().st_mtime if lock.exists() else folder.stat().st_mtime
    return Entry(folder, facts, tuple(files), sum(sizes), used, tuple(problems))


def select(keys: Iterable[str]) -> list[Entry]:
    """The entries whose keys begin like these."""
    everything = entries()
    chosen: dict[str, Entry] = {}
    for key in keys:
        matching = [entry for entry in everything if entry.key.startswith(key)]
        if not matching:
            raise DataError(f"the cache holds no features {key!r}{closest(key, [e.key for e in everything])}")
        chosen |= {entry.key: entry for entry in matching}
    return list(chosen.values())


def verify(entry: Entry, advance: Callable[[int], None] = lambda _: None) -> list[str]:
    """What is wrong with it: files that are not whole, or have changed since they were written."""
    found = list(entry.problems)
    for file in entry.files:
        damage = file.damage()
        if damage is not None:
            found.append(f"{file.name}: {damage}")
        advance(file.bytes)
    return found


def stale(entry: Entry, days: float) -> bool:
    """Whether nobody has used it for so long."""
    return time.time() - entry.used > days * 86_400


def remove(entry: Entry) -> bool:
    """Throw it away; False when somebody is writing to it."""
    with alone(entry.folder, wait=False) as nobody:
        if nobody:
            shutil.rmtree(entry.folder)
        return nobody

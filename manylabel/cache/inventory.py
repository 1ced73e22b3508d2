"""What is in the feature cache: to look at, to check, to throw away. Everything in it can be computed again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from manylabel.cache.extract import alone
from manylabel.cache.key import FORMAT
from manylabel.cache.stage_file import StageFile
from manylabel.cache_folder import cache_folder
from manylabel.error import DataError
from manylabel.storage.own_file import is_plain_file, read_own_json
from manylabel.suggest import closest

KEY = re.compile(r"[0-9a-f]{32}")
OURS = re.compile(
    r"lock|facts\.json|(final|(stage|merged)\d+|entry-\w+)(-mean)?\.(bin|json)|.*\.partial"
)  # of files in an entry


class PlainStage(TypedDict):
    """How many images of a stage are computed, and what storing them loses at most."""

    shape: list[int]
    done: int
    rounding: float


class PlainEntry(TypedDict):
    """For JSON. What its facts.json says may be anything."""

    key: str
    folder: str
    backbone: object
    data: object
    images: object
    view: int
    dtype: object
    stages: dict[str, PlainStage]
    bytes: int
    used: float
    complete: bool
    problems: list[str]


@dataclass(frozen=True)
class Entry:
    """The features of one set of images, prepared in one way."""

    folder: Path
    facts: Mapping[str, object]
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
        view = self.facts.get("view")
        number = view.get("number") if isinstance(view, dict) else 0
        return number if isinstance(number, int) else 0

    def plain(self) -> PlainEntry:
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
    """All that is there, the one used last first. What is not ours is not there: the user may have named a folder with
    other things in it."""
    place = cache_folder() / "features"
    found = [_entry(folder) for folder in place.iterdir() if is_entry(folder)] if place.is_dir() else []
    return sorted(found, key=lambda entry: (-entry.used, entry.key))


def is_entry(folder: Path) -> bool:
    """Whether a folder is of the cache's making, of whatever version: by its name, and its facts or all of its files."""
    if not KEY.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False
    facts = _facts(folder)
    return {"format", "weights"} <= set(facts) or all(OURS.fullmatch(name) for name in os.listdir(folder))


def _facts(folder: Path) -> Mapping[str, object]:
    try:
        return read_own_json(folder / "facts.json")
    except (OSError, ValueError):
        return {}


def _entry(folder: Path) -> Entry:
    facts, problems = _facts(folder), []
    if not facts:
        problems = ["its facts.json is missing or damaged"]
    elif facts.get("format") != FORMAT:
        facts, problems = {}, ["written by another version, which is not read any more"]
    files = []
    for path in sorted(folder.glob("*.bin")):
        file = StageFile.find(folder, path.stem)
        if file is None and not problems:
            problems.append(f"{path.name} or what is said about it is damaged")
        elif file is not None:
            files.append(file)
    sizes = [path.stat().st_size for path in folder.iterdir() if is_plain_file(path)]
    lock = folder / "lock"
    used = lock.lstat().st_mtime if os.path.lexists(lock) else folder.stat().st_mtime
    return Entry(folder, facts, tuple(files), sum(sizes), used, tuple(problems))


def select(keys: Iterable[str]) -> list[Entry]:
    """The entries whose keys begin like these."""
    everything = entries()
    chosen: dict[str, Entry] = {}
    for key in keys:
        if not key.strip():
            raise DataError("an empty key would mean everything; give the beginning of one, as 'cache list' shows them")
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
    """Throw it away; False when somebody is writing to it. A file in it that is not ours stays, with its folder."""
    try:
        with alone(entry.folder, wait=False) as nobody:
            if nobody:
                ours = [path for path in entry.folder.iterdir() if OURS.fullmatch(path.name) and not path.is_dir()]
                for path in sorted(
                    ours, key=lambda path: path.name == "lock"
                ):  # others wait for the lock: it goes last
                    path.unlink()
                if not any(entry.folder.iterdir()):
                    entry.folder.rmdir()
            return nobody
    except OSError as error:
        raise DataError(f"cannot remove {entry.folder}: {error.strerror or error}") from error

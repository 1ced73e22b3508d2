"""What a fetch has done so far, beside the data: which archives, how they were verified, whether all is complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from manylabel.data.fetch.download import Downloaded
from manylabel.error import DataError
from manylabel.storage.atomic import write_json
from manylabel.storage.json_text import read_object
from manylabel.storage.own_file import make_way, open_own

MANIFEST = ".manylabel-fetch.json"
LOCK = ".manylabel-fetch.lock.json"  # checksums of files for which nobody publishes one: trust on first use
BUSY = ".manylabel-fetch.busy"
WORKSHOP = ".manylabel-fetch"
ARCHIVES = f"{WORKSHOP}/archives"  # so deep that no reader takes what is there for part of the data
OURS = {MANIFEST, LOCK, BUSY, WORKSHOP}


Wanted = dict[str, list[str] | str | int]  # what of the data set is asked for, in words for people


class Manifest:
    """The manifest of one folder. Every change is written at once, so that a killed fetch can be taken up."""

    def __init__(self, out: Path, name: str, wanted: Wanted) -> None:
        """A folder holds the answer to one `wanted` only."""
        self.out = out
        self.path = out / MANIFEST
        self._data = self._load(name, wanted)

    @property
    def complete(self) -> bool:
        return bool(self._data["complete"])

    @property
    def date(self) -> str:
        return str(self._data["date"])

    def unpacked(self, file: str) -> bool:
        return bool(self._data["archives"].get(file, {}).get("unpacked"))

    def note(self, file: str, got: Downloaded, **more: int) -> None:
        """An archive is here and verified; later again with unpacked=True and the number of files."""
        self._data["archives"][file] = {
            "url": got.url,
            "size": got.size,
            "sha256": got.sha256,
            "verified": got.verified or "nobody publishes a checksum; this one is remembered",
            **more,
        }
        self._write()

    def finish(self, **more: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._data = {**self._data, **more, "complete": True, "date": now}
        self._write()

    def reopen(self) -> None:
        """Something is missing after all: everything is checked and brought again."""
        self._data["complete"], self._data["archives"] = False, {}
        self._write()

    def remembered(self, file: str) -> str | None:
        return self._locked().get(file)

    def remember(self, file: str, sha256: str) -> None:
        locked = self._locked()
        if locked.get(file) != sha256:
            write_json(self.out / LOCK, {**locked, file: sha256})

    def _locked(self) -> dict[str, str]:
        found = _read(self.out / LOCK) if (self.out / LOCK).exists() else {}
        if not all(isinstance(checksum, str) for checksum in found.values()):
            raise DataError(f"{self.out / LOCK} holds what is no checksum; delete it or choose another folder")
        return found

    def _load(self, name: str, wanted: Wanted) -> dict[str, Any]:
        fresh = {"name": name, "wanted": wanted, "complete": False, "date": "", "archives": {}}
        if self.path.exists():
            found = _read(self.path)
            if not _is_manifest(found):
                raise DataError(f"{self.path} is not a manifest of ours; delete it or choose another folder")
            if (found["name"], found["wanted"]) == (name, wanted):
                return found
            if found["complete"] or not self._only_ours():  # else it was stopped before anything was unpacked
                raise DataError(
                    f"{self.out} holds {found['name']} ({_said(found['wanted'])}), not {name} ({_said(wanted)}); "
                    "choose another folder"
                )
            return fresh
        if self.out.exists() and not self.out.is_dir():
            raise DataError(f"{self.out} is a file; name a folder for the data")
        if not self._only_ours():
            raise DataError(f"{self.out} holds other files; choose an empty or a new folder, so that nothing is mixed")
        return fresh

    def _only_ours(self) -> bool:
        return not self.out.is_dir() or all(path.name in OURS for path in self.out.iterdir())

    def begin(self) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        self._write()

    def _write(self) -> None:
        write_json(self.path, self._data)


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Two fetches into one folder would write into each other's parts (where the system has file locks)."""
    for place in (out / WORKSHOP, out / ARCHIVES):
        if place.is_symlink():
            raise DataError(f"{place} is a link, and what it leads to may be another's; put a folder in its place")
    try:
        import fcntl
    except ImportError:
        yield
        return
    out.mkdir(parents=True, exist_ok=True)
    make_way(out / BUSY)
    with open_own(out / BUSY, writable=True, create=True) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"another fetch is writing to {out}; wait until it is done") from None
        try:
            yield
        finally:
            (out / BUSY).unlink(missing_ok=True)


def _is_manifest(found: dict[str, Any]) -> bool:
    kinds = {"name": str, "wanted": dict, "complete": bool, "date": str, "archives": dict}
    right = all(isinstance(found.get(key), kind) for key, kind in kinds.items())
    return right and all(isinstance(note, dict) for note in found["archives"].values())


def _said(wanted: Wanted) -> str:
    parts = (
        f"{key} {', '.join(map(str, value)) if isinstance(value, list) else value}" for key, value in wanted.items()
    )
    return "; ".join(parts)


def _read(path: Path) -> dict[str, Any]:
    return read_object(path, advice="delete it or choose another folder")

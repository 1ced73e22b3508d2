"""One process at a time in a folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from filelock import FileLock, Timeout

from manylabel.error import ConfigError
from manylabel.storage.atomic import write_json
from manylabel.storage.own_file import is_plain_file, read_own_json
from manylabel.storage.plain_file import KB

LOCK = ".manylabel-lock"  # empty; locked by the system while its owner lives, so that a killed process leaves no lock behind
OWNER = ".manylabel-lock.json"  # who that is
LARGEST = 10 * KB  # of the latter
SECONDS = 20  # that the workers of a killed process may take to notice; until then they hold its lock


class Owner(TypedDict):
    process: int
    host: str
    since: str


def is_at_work(folder: Path) -> bool:
    """Whether somebody holds this folder, or died there."""
    return _owner(folder) is not None


def check_nobody_says_so(folder: Path) -> None:
    """Stop where another process says that it is at work here; what it leaves there now is not finished."""
    owner = _owner(folder)
    if owner and (owner["process"], owner["host"]) != (os.getpid(), platform.node()) and not _has_died(folder):
        raise _in_use(folder, owner)


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Work in this folder alone, or stop and say who is at work. The folder is made, and goes again if it stays empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_others(folder / LOCK, os.path.getsize)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=SECONDS if _has_died(folder) else 0)
    except Timeout:
        raise _in_use(folder, _owner(folder)) from None
    try:
        _refuse_others(folder / OWNER, lambda path: _owner(path.parent) is None)
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        owner: Owner = {"process": os.getpid(), "host": platform.node(), "since": now}
        write_json(folder / OWNER, owner)
        yield
    finally:
        if _owner(folder):
            (folder / OWNER).unlink(missing_ok=True)
        if [path.name for path in folder.iterdir()] == [LOCK]:  # nothing came of it
            (folder / LOCK).unlink()
            for path in made:
                with suppress(OSError):  # others have put something there
                    path.rmdir()
        lock.release()


def _refuse_others(path: Path, is_others: Callable[[Path], object]) -> None:
    """Stop where something of somebody else's has the name of a file of ours."""
    if os.path.lexists(path) and (not is_plain_file(path) or is_others(path)):
        raise ConfigError(f"{path} is not a lock of manylabel's; remove it, or choose another --out")


def _owner(folder: Path) -> Owner | None:
    """Who holds the lock, or held it; None where nobody has said so yet."""
    try:
        facts = read_own_json(folder / OWNER, LARGEST)
        return {"process": int(facts["process"]), "host": str(facts["host"]), "since": str(facts["since"])}
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _in_use(folder: Path, owner: Owner | None) -> ConfigError:
    who = "process {process} on {host} (since {since})".format(**owner) if owner else "another process"
    return ConfigError(f"{folder} is in use by {who}; wait until it has ended, or choose another --out")


def _has_died(folder: Path) -> bool:
    owner = _owner(folder)
    if not owner or owner["host"] != platform.node():
        return False
    try:
        os.kill(owner["process"], 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another's process, or a number that is none
        return False
    return False

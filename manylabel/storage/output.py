"""Who may be overwritten: only a file that is provably ours, and only when somebody asked for it (--overwrite).

A page, a picture and a JSON object of ours say so inside. What has no room for that, or is edited by people afterwards
(tables, label files, tasks to annotate), has a receipt beside it, which holds for the bytes we wrote and for no others.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from manylabel.error import ManylabelError
from manylabel.storage.plain_file import open_plain
from manylabel.storage.receipt import MADE_BY as MADE_BY
from manylabel.storage.receipt import has_receipt

LOOKED_AT = 1 << 16  # bytes: a mark stands in front

# How a file of ours begins. In JSON the mark is a field of the whole object, not of something in it.
MARKS = (
    re.compile(rb'\s*<!doctype html>.{,20000}?<meta name="generator" content="manylabel">', re.DOTALL | re.IGNORECASE),
    re.compile(rb'\{\s*(?:"[^"\\]*": (?:"[^"\\]*"|\d+),\s*){,3}"made_by": "manylabel '),
    re.compile(rb"\x89PNG\r\n\x1a\n.*?tEXtSoftware\0manylabel", re.DOTALL),
)


def wrote(path: Path) -> bool:
    """Whether this file is provably ours: by its mark, or by its receipt."""
    with open_plain(path, ManylabelError) as file:
        beginning = file.read(LOOKED_AT)
    return any(mark.match(beginning) for mark in MARKS) or has_receipt(path)


def check_output(path: Path | None, overwrite: bool) -> None:
    """Stop, before any work, if `path` cannot be written or would take the place of something."""
    if path is None:
        return
    if not os.path.lexists(path):
        above = _lowest_that_is_there(path.absolute())
        if not above.is_dir():
            raise ManylabelError(f"{above} is a file, so nothing can be written below it; choose another name")
        return
    kind = path.lstat().st_mode
    if stat.S_ISDIR(kind):
        raise ManylabelError(f"{path} is a folder; name a file to write")
    if not stat.S_ISREG(kind):
        what = "a link; name the file itself" if stat.S_ISLNK(kind) else "not a regular file; choose another name"
        raise ManylabelError(f"{path} is {what}")
    if not wrote(path):
        raise ManylabelError(
            f"{path} is there already and was not written by manylabel, or was changed since; choose another name, or "
            "move it away"
        )
    if not overwrite:
        raise ManylabelError(f"{path} is there already; choose another name, or replace it with --overwrite")


def check_apart(paths: Mapping[str, Path | None]) -> None:
    """Stop where two outputs of a command, by their options, would be the same file."""
    seen: dict[str, str] = {}
    for option, path in paths.items():
        if path is not None:
            first = seen.setdefault(os.path.realpath(path), option)
            if first != option:
                raise ManylabelError(f"{first} and {option} both name {path}; name two files")


def check_outputs(folder: Path, names: Iterable[str], overwrite: bool) -> None:
    """The same for files that will be written into a folder; a name may hold * for any."""
    check_is_folder(folder)
    for name in names:
        for path in sorted(folder.glob(name)) if "*" in name else [folder / name]:
            check_output(path, overwrite)


def check_is_folder(folder: Path) -> None:
    """Stop if this cannot be, or become, a folder."""
    found = _lowest_that_is_there(folder.absolute())
    if not found.is_dir():
        raise ManylabelError(f"{found} is not a folder; choose another --out")


def _lowest_that_is_there(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if os.path.lexists(place))

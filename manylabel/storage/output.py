"""Who may be overwritten: only a file that carries our own mark, and only when somebody asked for it (--overwrite)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from manylabel.error import ManylabelError
from manylabel.version import VERSION

MADE_BY = f"manylabel {VERSION}"  # stands as "made_by" in every JSON object that we write
LOOKED_AT = 1 << 16  # bytes: a mark stands in front

# What only we write into a file of its kind.
MARKS = (
    b'<meta name="generator" content="manylabel">',  # pages
    b'"made_by": "manylabel',  # JSON
    b'"description": "written by manylabel"',  # COCO
    b'"model_version": "manylabel"',  # tasks for Label Studio
    b"<!-- made by manylabel -->",  # its labelling config
    b"Software\0manylabel",  # PNG
)
# A table has no room for a mark; its first line says whose it is: exactly this one, or one that begins so.
HEADERS = (b"file_name,labels,scores,error", b"file_name,split", b"file_name,fold", b"file_name,reason")
HEADERS_BEGIN = (b"label,support,ap: ", b"figure,title,unit,better,", b"label,images,hard,share_hard,low,ap")


def wrote(path: Path) -> bool:
    """Whether this file carries our mark."""
    with open(path, "rb") as file:
        beginning = file.read(LOOKED_AT)
    line = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
    return line in HEADERS or line.startswith(HEADERS_BEGIN) or any(mark in beginning for mark in MARKS)


def check_output(path: Path | None, overwrite: bool, mine: Iterable[bytes] = ()) -> None:
    """Stop, before any work, if `path` cannot be written or would take the place of something.

    `mine`: further beginnings of a first line by which the caller knows its own file.
    """
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
    if not wrote(path) and not _begins(path, mine):
        raise ManylabelError(
            f"{path} is there already and was not written by manylabel; choose another name, or move it away"
        )
    if not overwrite:
        raise ManylabelError(f"{path} is there already; choose another name, or replace it with --overwrite")


def _begins(path: Path, beginnings: Iterable[bytes]) -> bool:
    with open(path, "rb") as file:
        return file.read(200).startswith(tuple(beginnings))


def check_apart(paths: Mapping[str, Path | None]) -> None:
    """Stop where two outputs of a command, by their options, would be the same file."""
    seen: dict[str, str] = {}
    for option, path in paths.items():
        if path is not None:
            first = seen.setdefault(os.path.realpath(path), option)
            if first != option:
                raise ManylabelError(f"{first} and {option} both name {path}; name two files")


def check_outputs(folder: Path, names: Iterable[str], overwrite: bool, mine: Iterable[bytes] = ()) -> None:
    """The same for files that will be written into a folder; a name may hold * for any."""
    check_is_folder(folder)
    for name in names:
        for path in sorted(folder.glob(name)) if "*" in name else [folder / name]:
            check_output(path, overwrite, mine)


def check_is_folder(folder: Path) -> None:
    """Stop if this cannot be, or become, a folder."""
    found = _lowest_that_is_there(folder.absolute())
    if not found.is_dir():
        raise ManylabelError(f"{found} is not a folder; choose another --out")


def _lowest_that_is_there(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if os.path.lexists(place))

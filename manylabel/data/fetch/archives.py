"""Data sets that are a handful of archives: bring each, verify it, unpack it, drop it; and what all fetches share."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from manylabel.console import say, transferring
from manylabel.data.fetch.catalogue import Archive, DataSet
from manylabel.data.fetch.checksum import digest_of, kind_of
from manylabel.data.fetch.connection import Patience
from manylabel.data.fetch.download import Advance, Downloaded, Say, download
from manylabel.data.fetch.manifest import ARCHIVES, WORKSHOP, Manifest, alone
from manylabel.data.fetch.unpack import unpack
from manylabel.error import DataError

PHOTO = re.compile(r"[0-9a-f]+\.jpg(\.part(\.json)?)?")
Progress = Callable[[str, int], AbstractContextManager[Advance]]


@dataclass(frozen=True)
class Way:
    """How to fetch, as opposed to what."""

    mirror: str | None = None
    keep_archives: bool = False
    patience: Patience = field(default_factory=Patience)
    say: Say = say
    progress: Progress = transferring


def fetch_archives(data: DataSet, out: Path, splits: tuple[str, ...], way: Way) -> Path:
    """All of `data`, or the splits asked for, unpacked below `out`."""
    chosen = [archive for archive in data.archives if archive.split is None or not splits or archive.split in splits]
    manifest = Manifest(out, data.name, {"splits": list(splits) or "all"})
    if already_there(manifest, _missing(data, out, splits), way):
        return out
    show_licence(data, way)
    todo = [archive for archive in chosen if not manifest.unpacked(archive.name)]
    check_space(out, sum(to_download(out, a) + a.unpacked for a in todo), data.name)
    way.say(f"{len(todo)} files, {readable(sum(to_download(out, a) for a in todo))} to download")
    with alone(out):
        manifest.begin()
        for archive in todo:
            path, got = bring(archive, out, manifest, way)
            manifest.note(archive.name, got)
            with way.progress(f"unpacking {archive.name}", archive.unpacked) as advance:
                files = unpack(path, archive, out, splits=splits, advance=advance)
            manifest.note(archive.name, got, unpacked=True, files=files)
            if not way.keep_archives:
                path.unlink()
        if missing := _missing(data, out, splits):
            raise DataError(
                f"{data.name} was unpacked, but {out / missing[0]} is not there; the archives are not what they were"
            )
        tidy(out, way, data.archives)
        manifest.finish()
    way.say(f"{data.name} is in {out}")
    return out


def _missing(data: DataSet, out: Path, splits: tuple[str, ...]) -> list[str]:
    wanted = [path for split, path in data.expects if split is None or not splits or split in splits]
    return [path for path in wanted if not (out / path).exists()]


def already_there(manifest: Manifest, missing: list[str], way: Way) -> bool:
    """True when a fetch of the very same has finished here and its data are still there."""
    if not manifest.complete:
        return False
    if missing:
        way.say(f"{manifest.out / missing[0]} is no longer there; fetching again")
        manifest.reopen()
        return False
    way.say(f"{manifest.out} is complete since {manifest.date}; nothing to do")
    return True


def show_licence(data: DataSet, way: Way) -> None:
    way.say(f"{data.name}: {data.about}")
    way.say(f"licence: {data.licence}; read {data.page}")


def to_download(out: Path, archive: Archive) -> int:
    """Bytes still to come: what an earlier fetch left is not brought again."""
    here = out / ARCHIVES / archive.name
    if here.exists():
        return 0
    part = here.with_name(here.name + ".part")
    return max(0, archive.size - (part.stat().st_size if part.exists() else 0))


def bring(archive: Archive, out: Path, manifest: Manifest, way: Way) -> tuple[Path, Downloaded]:
    """The verified file in the folder of archives: the one that is there already, or a new download."""
    path = out / ARCHIVES / archive.name
    known = None if archive.checksum else manifest.remembered(archive.name)
    if path.exists():
        got = _verify(archive, path, known)
    else:
        with way.progress(f"downloading {archive.name}", archive.size) as advance:
            got = download(
                archive, path, mirror=way.mirror, known=known, patience=way.patience, say=way.say, advance=advance
            )
    if not archive.checksum:
        if not got.verified:
            way.say(f"{archive.name}: nobody publishes a checksum; {got.sha256} is remembered for the next time")
        manifest.remember(archive.name, got.sha256)
    return path, got


def _verify(archive: Archive, path: Path, known: str | None) -> Downloaded:
    """A file from an earlier fetch, or one that somebody put there by hand."""
    expected, size = archive.checksum or known, path.stat().st_size
    digest = digest_of(path, kind_of(expected))
    if expected is not None and digest.published != expected:
        raise DataError(f"{path}: the checksum should be {expected}, but is {digest.published}; delete it")
    if (archive.exact and size != archive.size) or size > archive.limit:
        raise DataError(f"{path} has {size:,} bytes instead of {archive.size:,}; delete it")
    return Downloaded(archive.url, size, digest.sha256, expected or "")


def tidy(out: Path, way: Way, archives: Iterable[Archive], splits: Iterable[str] = ()) -> None:
    """Remove what was brought, and nothing else; `splits` have folders for single photographs."""
    if way.keep_archives:
        way.say(f"the archives are kept in {out / ARCHIVES}")
        return
    place = out / ARCHIVES
    photos = [path for split in splits for path in (place / split).glob("*") if PHOTO.fullmatch(path.name)]
    for path in [place / archive.name for archive in archives] + photos:
        for end in ("", ".part", ".part.json"):
            with suppress(OSError):  # a folder of others
                path.with_name(path.name + end).unlink(missing_ok=True)
    for folder in (*(place / split for split in splits), place, out / WORKSHOP):
        with suppress(OSError):  # others have put something there
            folder.rmdir()


def readable(size: float) -> str:
    """'1.9 GB': decimal, as servers and shops count."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while abs(size) >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.{0 if units[0] == 'bytes' else 1}f} {units[0]}"


def check_space(out: Path, needed: int, what: str) -> None:
    """A DataError with both figures unless `needed` bytes are free where `out` is or will be."""
    place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise DataError(
            f"{what} needs {readable(needed)} ({needed:,} bytes) in {out}, but only {readable(free)} ({free:,} bytes) "
            "are free there; choose another folder"
        )

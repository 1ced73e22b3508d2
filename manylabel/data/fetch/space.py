"""Is there room? Asked before anything is downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

from manylabel.error import DataError


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

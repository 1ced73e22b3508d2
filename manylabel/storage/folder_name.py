"""The names that folders of runs may have."""

from __future__ import annotations

from pathlib import Path

from manylabel.error import ConfigError


def refuse_bytes(folder: Path) -> None:
    """Before any work: libraries that write and read weights want names in UTF-8, unlike the file system."""
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{folder} is a name of bytes that are no UTF-8; choose another --out") from None

"""Checksums while bytes pass by: sha256 always (it goes into the manifest), md5 where that is what is published."""

from __future__ import annotations

import hashlib
from pathlib import Path

from manylabel.storage.plain_file import open_plain

BLOCK = 1 << 20


class Digest:
    """The sha256 of what was fed in, and its md5 when that is the published one."""

    def __init__(self, kind: str = "sha256") -> None:
        self._sha256 = hashlib.sha256()
        self._other = None if kind == "sha256" else hashlib.new(kind, usedforsecurity=False)

    def update(self, block: bytes) -> None:
        self._sha256.update(block)
        if self._other is not None:
            self._other.update(block)

    @property
    def sha256(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"

    @property
    def published(self) -> str:
        """In the published kind, 'md5:…' or 'sha256:…'."""
        return f"{self._other.name}:{self._other.hexdigest()}" if self._other is not None else self.sha256


def kind_of(checksum: str | None) -> str:
    return checksum.split(":", 1)[0] if checksum else "sha256"


def digest_of(path: Path, kind: str = "sha256") -> Digest:
    """Of a file as it is now; nothing when there is no such file. A pipe or a device is refused."""
    digest = Digest(kind)
    if path.exists():
        with open_plain(path) as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest

"""A file that is still on its way: its bytes in NAME.part and, beside it, which version of the file they belong to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import BinaryIO

from manylabel.data.fetch.checksum import Digest, digest_of
from manylabel.error import DataError
from manylabel.storage.atomic import write_json
from manylabel.storage.json_text import read_object
from manylabel.storage.own_file import make_way, own_handle


@dataclass(frozen=True)
class Version:
    """What the server calls this version of the file; a changed file must not be joined to an old beginning."""

    url: str = ""
    validator: str = ""  # strong ETag, else Last-Modified
    stated: str | None = None  # a checksum the server stated

    @classmethod
    def of(cls, url: str, headers: HTTPMessage, stated: str | None) -> Version:
        etag = headers.get("ETag", "")
        weak = not etag or etag.startswith("W/")  # a weak tag does not promise the same bytes
        return cls(url, headers.get("Last-Modified", "") if weak else etag, stated)


class NoRoom(DataError):
    """The disk does not take any more."""


class Part:
    """The growing file and its checksum; `start_over` empties it, `keep_as` gives it its final name."""

    def __init__(self, path: Path, kind: str) -> None:
        self.final = path
        self.path = path.with_name(path.name + ".part")
        self._note = path.with_name(path.name + ".part.json")
        self._kind = kind
        self._file: BinaryIO | None = None
        self.version = self._read_note()
        self.digest = Digest(kind)
        self.size = 0

    def resume(self) -> None:
        """Take up what is there: its bytes are hashed once, so that the rest can be added to them."""
        with self._writing():
            make_way(self.path)
            self.digest = digest_of(self.path, self._kind)
            self.size = self.path.stat().st_size if self.path.exists() else 0

    def belongs_to(self, version: Version) -> None:
        if version != self.version:
            self.version = version
            write_json(self._note, asdict(version))

    def start_over(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        self.digest, self.size, self.version = Digest(self._kind), 0, Version()

    def add(self, block: bytes) -> None:
        with self._writing():
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                make_way(self.path)
                handle = own_handle(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                self._file = open(handle, "ab")  # noqa: SIM115  (open over many calls; closed by close)
            self._file.write(block)
        self.digest.update(block)
        self.size += len(block)

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with self._writing():
                file.close()  # writes what is still in its buffer

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise NoRoom(f"cannot use {self.path}: {error.strerror}; mend that and start again") from None

    def keep(self) -> None:
        """Verified: from now on it has its own name."""
        self.close()
        self.path.touch()  # a file of no bytes was never opened
        self.path.replace(self.final)
        self._note.unlink(missing_ok=True)

    def _read_note(self) -> Version:
        try:
            noted = Version(**read_object(self._note))
        except (DataError, TypeError):
            return Version()  # without it we do not know what the part belongs to
        texts = (noted.url, noted.validator, noted.stated or "")
        return noted if all(isinstance(text, str) for text in texts) else Version()

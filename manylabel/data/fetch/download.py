"""One file from a server that may cut, stall, change or lie: resumed, counted, verified, and only then named."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manylabel.data.fetch.catalogue import Archive
from manylabel.data.fetch.checksum import BLOCK, kind_of
from manylabel.data.fetch.connection import (
    Missing,
    Passing,
    Patience,
    RangeRefused,
    Unreachable,
    mirrored,
    read,
    request,
    stated_md5,
)
from manylabel.data.fetch.part import Part, Version
from manylabel.error import DataError

Advance = Callable[[int], None]
Say = Callable[[str], None]
WORTH = 8 << 20  # a try that brought this much does not count against the server's patience


@dataclass(frozen=True)
class Downloaded:
    """A verified file: where it is from, and how it was verified."""

    url: str
    size: int
    sha256: str
    verified: str  # the checksum it was compared with, or '' when there was none


class WrongChecksum(DataError):
    """All bytes came, but they are others than they should be."""


def download(
    archive: Archive,
    path: Path,
    *,
    mirror: str | None = None,
    known: str | None = None,
    patience: Patience | None = None,
    say: Say,
    advance: Advance,
) -> Downloaded:
    """Bring `archive` to `path`, from its first address that has it; `known` is a checksum remembered from before."""
    if mirror is not None or not archive.also:
        addresses: tuple[str, ...] = (mirrored(archive.url, mirror),)
    else:
        addresses = (archive.url, *archive.also)
    for number, url in enumerate(addresses, 1):
        try:
            return _Download(archive, url, path, known, patience or Patience(), say, advance).run()
        except (Missing, Unreachable) as error:
            if number == len(addresses):
                raise
            say(f"{error}; trying {addresses[number]}")
    raise AssertionError("there is at least one address")


class _Download:
    """The state of one download from one address."""

    def __init__(
        self, archive: Archive, url: str, path: Path, known: str | None, patience: Patience, say: Say, advance: Advance
    ) -> None:
        self.archive, self.url, self.patience, self.say, self.advance = archive, url, patience, say, advance
        self.expected = archive.checksum or known
        self.part = Part(path, kind_of(self.expected or "md5:"))  # md5: the server may state one

    def run(self) -> Downloaded:
        try:
            self.part.resume()
            self.advance(self.part.size)
            for again in (True, False):
                self._fill()
                try:
                    return self._verified()
                except WrongChecksum as error:
                    self._start_over()  # the bytes are of no use, whatever made them wrong
                    if not again:
                        raise
                    self.say(f"{error}; trying once more from the start")
            raise AssertionError("the second try returns or raises")
        finally:
            self.part.close()

    def _fill(self) -> None:
        """Try until all bytes are there; each try goes on where the one before stopped."""
        failures, no_host = 0, True
        while True:
            before = self.part.size
            try:
                if self._complete() or self._once():
                    return
            except Passing as problem:
                failures = 1 if self.part.size - before >= WORTH else failures + 1
                no_host = no_host and problem.no_host  # whoever has answered once is probably back soon
                tries = self.patience.most_tries(no_host)
                if failures >= tries:
                    self.part.close()
                    raise Unreachable(
                        f"{problem}, {failures} times in a row; {self.part.size:,} bytes are kept in {self.part.path}, "
                        "start again to go on from there"
                    ) from None
                wait = self.patience.wait(failures, problem.asked)
                self.say(f"{problem}; trying again in {wait:g} s ({failures + 1} of {tries})")
                time.sleep(wait)

    def _complete(self) -> bool:
        if self.part.size > self.archive.limit:
            self._start_over()
        return self.archive.exact and self.part.size == self.archive.size

    def _once(self) -> bool:
        """One request; True when the file is complete after it."""
        asked = self._range()
        try:
            answer = request(self.url, self.patience.timeout, asked)
        except RangeRefused as refused:
            if refused.total == self.part.size and (self.expected or self.part.version.stated):
                return True  # it was complete already; the checksum will tell
            self._start_over()
            raise Passing(f"{self.url}: the part on disk does not fit the file") from None
        with answer:
            self._take_up(answer, asked)
            total = self._announced(answer)
            while self.part.size < (total or self.archive.limit + 1):
                block = read(answer, BLOCK, self.url)
                if not block:
                    break
                self._add(block)
            if total is None:
                return True  # chunked: a cut would have been noticed
            if self.part.size < total:
                raise Passing(f"{self.url}: the connection ended after {self.part.size:,} of {total:,} bytes")
            return True

    def _range(self) -> dict[str, str]:
        """Ask for the missing rest, if the part is of this very file or a checksum will tell in the end."""
        version = self.part.version
        same = version.url == self.url and bool(version.validator)
        if self.part.size and not same and self.expected is None:
            self._start_over()
        if not self.part.size:
            return {}
        wanted = {"Range": f"bytes={self.part.size}-"}
        return {**wanted, "If-Range": version.validator} if same else wanted

    def _take_up(self, answer: http.client.HTTPResponse, asked: dict[str, str]) -> None:
        """After this the part is what the answer's body continues."""
        stated = stated_md5(answer) if self.expected is None else None
        version = Version.of(self.url, answer.headers, stated)
        if answer.status == 206:
            changed = asked.get("If-Range", version.validator) != version.validator
            begins = (answer.headers.get("Content-Range") or "").removeprefix("bytes ").split("-")[0]
            if changed or begins.strip() != str(self.part.size):
                self._start_over()
                raise Passing(f"{self.url}: the server sent another range or another file than the one asked for")
        elif self.part.size:
            self._start_over()  # no ranges here, or the file has changed: this is the whole of it
        self.part.belongs_to(version)

    def _announced(self, answer: http.client.HTTPResponse) -> int | None:
        """How long the whole file is by the server's word, checked against the catalogue's; None for a chunked body."""
        if answer.length is None:
            if not answer.chunked and not self.archive.exact:  # type: ignore[attr-defined]
                raise DataError(f"{self.url}: the server does not say how long the file is, so a cut cannot be noticed")
            return self.archive.size if self.archive.exact else None
        total = self.part.size + answer.length
        if self.archive.exact and total != self.archive.size:
            raise DataError(
                f"{self.url}: the server announces {total:,} bytes, but the file has {self.archive.size:,}; "
                "it has changed or this is another file, try a mirror"
            )
        if total > self.archive.limit:
            raise DataError(f"{self.url}: the server announces {total:,} bytes, more than {self.archive.limit:,}")
        return total

    def _add(self, block: bytes) -> None:
        if self.part.size + len(block) > self.archive.limit:
            self._start_over()
            raise DataError(f"{self.url}: the server sends more than {self.archive.limit:,} bytes; nothing is kept")
        self.part.add(block)
        self.advance(len(block))

    def _start_over(self) -> None:
        self.advance(-self.part.size)
        self.part.start_over()

    def _verified(self) -> Downloaded:
        self.part.close()
        expected = self.expected or self.part.version.stated
        found = self.part.digest.published
        if expected is not None and found != expected:
            which = "" if self.archive.checksum else " (as stated by the server or remembered from the first download)"
            raise WrongChecksum(f"{self.url}: the checksum should be {expected}{which}, but is {found}")
        result = Downloaded(self.url, self.part.size, self.part.digest.sha256, expected or "")
        self.part.keep()
        return result

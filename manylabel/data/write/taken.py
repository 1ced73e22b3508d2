"""Which image files leave a data set when it is converted, and what a person should know about them.

Only images leave: a name in a label file may be a link, and a link may lead to anything that its reader may open.
Data sets made of links are common, so a link out of the data is followed where an image is behind it, and told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from manylabel.data.record import Record
from manylabel.error import DataError, DecodeError

NAMED = 3  # of many


@dataclass
class Taken:
    """Counted while images are placed."""

    inside: tuple[Path, ...] = ()  # folders of the data, links resolved; () = nobody said, and no link is told
    max_bad_share: float = 1.0
    images: int = 0
    refused: dict[str, str] = field(default_factory=dict)  # image → why it stays; the first few
    refusals: int = 0
    links: dict[str, str] = field(default_factory=dict)  # image → where it really is; the first few
    outside: int = 0
    _last: tuple[Path, str] | None = None  # a shard holds many images

    def from_file(self, key: str, path: Path) -> None:
        """An image was taken from this file."""
        if not self.inside:
            return
        if self._last is None or self._last[0] != path:
            self._last = path, os.path.realpath(path)
        place = self._last[1]
        if not any(is_below(place, folder) for folder in self.inside):
            self.outside += 1
            if len(self.links) < NAMED:
                self.links[key] = place

    def refuse(self, key: str, reason: str) -> None:
        self.refusals += 1
        if len(self.refused) < NAMED:
            self.refused[key] = reason

    def check(self) -> None:
        """Stop where more is no image than training would accept; nothing but images has been put in place yet."""
        total = self.images + self.refusals
        if self.refusals and (not self.images or self.refusals > self.max_bad_share * total):
            raise DataError(
                f"{self.refusals} of {total} images cannot be taken: {self._named(self.refused, self.refusals)}. Mend "
                "them, allow more with --set data.max_bad_share=0.5 or another share, or leave the images where they "
                "are with --images leave"
            )

    def notes(self) -> list[str]:
        notes = []
        if self.outside:
            where = self._named({key: f"at {place}" for key, place in self.links.items()}, self.outside)
            notes.append(f"{self.outside} images are reached by links that lead out of the data folder: {where}")
        if self.refusals:
            notes.append(f"{self.refusals} images were left out: {self._named(self.refused, self.refusals)}")
        return notes

    @staticmethod
    def _named(some: dict[str, str], count: int) -> str:
        more = f" … and {count - len(some)} more" if count > len(some) else ""
        return ", ".join(f"{key} ({fact})" for key, fact in some.items()) + more


def is_below(place: str, folder: Path) -> bool:
    return place == str(folder) or place.startswith(os.path.join(folder, ""))


def placed(records: Iterable[Record], place: Callable[[Record], str], taken: Taken) -> Iterator[tuple[Record, str]]:
    """Each record with the name of its placed image; those without an image are left out and counted."""
    for record in records:
        try:
            name = place(record)
        except DecodeError as error:
            taken.refuse(record.key, str(error))
            continue
        taken.images += 1
        yield record, name
    taken.check()

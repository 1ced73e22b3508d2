"""What records need of a format beside their labels, and what a person is told about what it cannot hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from manylabel.data.record import Box, Record
from manylabel.data.source import ImageSource
from manylabel.error import DataError, DecodeError
from manylabel.labels import UNKNOWN


def tri_state(record: Record, rest: int) -> dict[str, list[str]]:
    """The field beside the present labels that keeps the three states apart: what is absent where the rest is unknown
    (also when that is nothing), else what is unknown."""
    if rest == UNKNOWN:
        return {"absent_labels": list(record.absent)}
    return {"unknown_labels": list(record.unknown)} if record.unknown else {}


def image_size(record: Record, source: ImageSource) -> tuple[int, int]:
    """(width, height): boxes in shares of the image need it."""
    try:
        return record.size or source.describe(record.key)
    except (DecodeError, OSError) as error:
        raise DataError(
            f"{record.where}: the boxes of {record.key!r} need its size, which cannot be read: {error}"
        ) from None


def shares(box: Box, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """left, top, width, height as shares of the image's width and height."""
    (left, top, right, bottom), (width, height) = box, size
    return left / width, top / height, (right - left) / width, (bottom - top) / height


@dataclass
class Tally:
    """Counted while records go by."""

    things: int = 0
    masks: int = 0
    flagged: int = 0  # crowds and difficult ones
    names: set[str] = field(default_factory=set)

    def add(self, record: Record) -> None:
        self.things += len(record.things)
        self.names.update(record.present, record.absent, record.unknown)
        for thing in record.things:
            self.names.add(thing.label)
            self.masks += thing.mask is not None
            self.flagged += thing.crowd or thing.difficult

    def notes(self, title: str, flags_are_kept: bool) -> list[str]:
        notes = [f"{self.masks} masks are not in {title}; write COCO to keep them"] if self.masks else []
        if self.flagged and not flags_are_kept:
            notes.append(
                f"that {self.flagged} boxes are crowds or hard to see is not in {title}; write COCO to keep it"
            )
        return notes

"""What a format is, and what its reader gives: records, one per image, in the words of the label file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.mask import AnyMask
from manylabel.data.source import ImageSource
from manylabel.labels import ABSENT

Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels; a whole image is (0, 0, width, height)


@dataclass(frozen=True, slots=True)
class Thing:
    """One object in an image."""

    label: str
    box: Box
    crowd: bool = False  # the box holds many of them, too many to tell apart
    difficult: bool = False  # hard to see: it must count neither for nor against a model
    mask: AnyMask | None = None


@dataclass(slots=True)
class Record:
    """One image. A label in none of the three lists is what `Reading.rest` says."""

    key: str  # the image's name in the source
    where: str  # place in the label file, for messages: 'labels.csv, row 7'
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    split: str | None = None  # as written; the builder makes it train, val or test
    group: str | None = None  # images of one group stay on one side of a split
    things: tuple[Thing, ...] = ()
    size: tuple[int, int] | None = None  # (width, height) where the label file tells
    unlabelled: bool = False  # nobody said anything about this image: it is left out


@dataclass(frozen=True)
class Reading:
    """An opened data set. `records()` starts from the beginning each time, and reads as it goes."""

    path: Path  # label file or folder
    source: ImageSource
    records: Callable[[], Iterator[Record]]
    labels: tuple[str, ...] | None = None  # in order; None = those that the records name, sorted
    rest: int = ABSENT  # what a label is that a record does not mention: ABSENT or UNKNOWN
    name: str = ""  # of the data set; '' = from the path
    notes: list[str] = field(default_factory=list)  # what was guessed or is odd, for the user to see


@dataclass(frozen=True)
class Format:
    """One way in which people keep images and labels."""

    name: str  # for --format
    title: str  # for people
    sniff: Callable[[Path], str]  # what at this path (file or folder) gives the format away, in words; '' = it is not
    open: Callable[[Path, DataConfig], Reading]

"""A format to write: records go in one at a time, so that a million of them need little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from manylabel.data.record import Record
from manylabel.data.source import ImageSource
from manylabel.data.write.taken import Taken
from manylabel.error import DataError
from manylabel.labels import LabelSpace

Images = Literal["leave", "link", "copy"]


@dataclass(frozen=True)
class Content:
    """What is written: records that can be asked for again, and what they mean."""

    records: Iterable[Record]  # iterating again starts from the beginning
    labels: LabelSpace
    rest: int  # what a label is that a record does not mention
    source: ImageSource
    images: Images  # what happens to the image files
    taken: Taken = field(default_factory=Taken)  # which of them left

    def __post_init__(self) -> None:
        for name in self.labels:
            refuse_label(name)


def refuse_label(name: str) -> None:
    """Readers take blanks from the ends, and refuse what UTF-8 cannot hold."""
    if name != name.strip() or name.encode("utf-8", "replace").decode("utf-8") != name:
        raise DataError(f"label {name!r} would not be read back as it is; rename it before it is written")


@dataclass(frozen=True)
class Target:
    """One format we write."""

    name: str  # for --to
    title: str  # for people
    write: Callable[[Content, Path], list[str]]  # to this path; returns what a person should know about the result
    files: tuple[str, ...] = ()  # names of what it writes into a folder, beside the images; * is any
    suffixes: tuple[str, ...] = ()  # of a path that is the first of these files itself, not the folder for them
    images: Images = "leave"  # what happens to images unless somebody asks for something else

    def is_file(self, path: Path) -> bool:
        """Whether this path names the file to write, not the folder for it."""
        return path.suffix.lower() in self.suffixes

    def outputs(self, path: Path) -> list[Path]:
        """Every file that writing to this path may write or replace, beside the images."""
        if self.is_file(path):
            return [path, *(path.parent / name for name in self.files[1:])]
        return [file for name in self.files for file in (sorted(path.glob(name)) if "*" in name else [path / name])]

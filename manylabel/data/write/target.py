"""A format to write: records go in one at a time, so that a million of them need little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manylabel.data.record import Record
from manylabel.data.source import ImageSource
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


@dataclass(frozen=True)
class Target:
    """One format we write."""

    name: str  # for --to
    title: str  # for people
    write: Callable[[Content, Path], list[str]]  # to this path; returns what a person should know about the result
    images: Images = "leave"  # what happens to images unless somebody asks for something else

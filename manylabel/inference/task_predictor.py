"""What a model says of images for one of its tasks, batch by batch. No torch."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from PIL import Image

from manylabel.error import ConfigError
from manylabel.inference.decoding import Prepared

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

    def answers(self, images: Sequence[Prepared], task: str) -> Iterator[AnswerT]:
        """One for each image in order; `task`: what this one is called among the inputs."""
        good = [image for image in images if image.error is None]
        found = iter(
            self.answer([image.name for image in good], [image.inputs[task] for image in good]) if good else ()
        )
        for image in images:
            yield next(found) if image.error is None else self.unread(image.name, image.error)

    @abstractmethod
    def prepared(self, picture: Image.Image) -> PreparedT:
        """What the model takes of an upright picture; called by several threads at once."""

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

"""What a model says of images for one of its tasks, batch by batch."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import torch
from PIL import Image

from manylabel.backbone import Backbone
from manylabel.bundle import TaskBundle
from manylabel.error import ConfigError
from manylabel.inference.decoding import Prepared

PreparedT = TypeVar("PreparedT")  # an image as the model takes it, and what is needed to answer for it
AnswerT = TypeVar("AnswerT")


class TaskPredictor(ABC, Generic[PreparedT, AnswerT]):
    """A task's path through the model, on a device."""

    at_least: int | None = None  # pixels that an image is decoded with at least; None = all that it has
    prepared: Callable[
        [Image.Image], PreparedT
    ]  # what the model takes of an upright picture; holds no model, for workers

    def __init__(self, bundle: TaskBundle, device: torch.device | str = "cpu", batch_size: int = 32) -> None:
        self.bundle, self.device, self.batch_size = bundle, torch.device(device), checked_batch_size(batch_size)
        self.model = bundle.model.eval().to(self.device)
        self.task = bundle.task

    @property
    def labels(self) -> tuple[str, ...]:
        return self.bundle.labels.names

    @cached_property
    def contiguous(self) -> Backbone:
        """The backbone once more, for maps of where it looked."""
        return self.model.backbone.contiguous()

    def answers(self, images: Sequence[Prepared]) -> Iterator[AnswerT]:
        """One for each image in order."""
        good = [image for image in images if image.error is None]
        inputs = [image.inputs[self.bundle.name] for image in good]
        found = iter(self.answer([image.name for image in good], inputs) if good else ())
        for image in images:
            yield next(found) if image.error is None else self.unread(image.name, image.error)

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

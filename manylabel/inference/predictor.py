"""The one door to a trained model: Predictor.load(bundle).predict(images)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manylabel.allocator import keep_memory
from manylabel.bundle import Bundle, TaskBundle, load_bundle
from manylabel.data.given_image import ImageLike
from manylabel.engine import Engine
from manylabel.error import ConfigError
from manylabel.inference.decoding import Decoding, Prepared
from manylabel.inference.labels import LabelPredictor
from manylabel.inference.objects import ObjectPredictor
from manylabel.inference.task_predictor import AnyTaskPredictor, checked_batch_size
from manylabel.new_labels import with_new_labels
from manylabel.runtime.fork import one_thread_in_children
from manylabel.suggest import closest

OBJECTS_AT_ONCE = 8  # images of a batch in which objects are looked for: their masks take memory


class Predictor:
    """A bundle on a device. Of a model with several tasks it answers all, or the one that is asked for."""

    def __init__(
        self,
        bundle: Bundle | TaskBundle,
        device: str | torch.device | None = None,
        batch_size: int = 32,
        engine: Engine | None = None,
    ) -> None:
        keep_memory()
        one_thread_in_children()
        self.bundles = {bundle.name: bundle} if isinstance(bundle, TaskBundle) else dict(bundle.tasks)
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.batch_size = checked_batch_size(batch_size)
        if engine is not None and len(self.bundles) > 1:
            raise ConfigError(
                "an engine computes one task; give the bundle of that task: Predictor(bundle.tasks[NAME], …)"
            )
        self._engine = engine
        self._of: dict[str, AnyTaskPredictor] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | torch.device | None = None) -> Predictor:
        """From a bundle folder, or the folder of a run."""
        return cls(load_bundle(Path(path)), device)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.bundles)

    @property
    def workers(self) -> int:
        """How many processes decoded images when the model was trained."""
        return max(bundle.config.data.workers for bundle in self.bundles.values())

    def of(self, task: str | None = None, score: float | None = None) -> AnyTaskPredictor:
        """That of one task; None = of the only one. `score`: of a task that finds objects, the lowest that is reported."""
        if task is None and len(self.bundles) > 1:
            raise ConfigError(f"this model has several tasks; choose one: {', '.join(self.bundles)}")
        name = next(iter(self.bundles)) if task is None else task
        if name not in self.bundles:
            raise ConfigError(f"there is no task {name!r} among {', '.join(self.bundles)}{closest(name, self.bundles)}")
        if self.finds_objects(name):
            return ObjectPredictor(self.bundles[name], self.device, min(self.batch_size, OBJECTS_AT_ONCE), score)
        if score is not None:
            raise ConfigError(f"score is for objects; task {name} gives labels, each with a threshold of its own")
        if name not in self._of:
            self._of[name] = LabelPredictor(self.bundles[name], self.device, self.batch_size, self._engine)
        return self._of[name]

    def finds_objects(self, task: str) -> bool:
        return self.bundles[task].task.finds_objects

    # --- what a model with one task has ---------------------------------------------------------------------------------

    @property
    def bundle(self) -> TaskBundle:
        return self.of().bundle

    @property
    def model(self) -> Any:
        return self.of().model

    @property
    def labels(self) -> tuple[str, ...]:
        return self.of().labels

    def for_labels(
        self,
        labels: Sequence[str],
        *,
        vectors: np.ndarray | None = None,
        text_file: str | None = None,
        task: str | None = None,
    ) -> Predictor:
        """The same model on torch, asked about other labels; it must be a zero-shot one. See `with_new_labels`."""
        bundle = with_new_labels(self.of(task).bundle, labels, vectors=vectors, text_file=text_file)
        return Predictor(bundle, self.device, self.batch_size)

    # --- predictions ----------------------------------------------------------------------------------------------------

    def predict(
        self,
        images: ImageLike | Iterable[ImageLike],
        task: str | None = None,
        score: float | None = None,
        workers: int = 0,
    ) -> list[Any]:
        """One answer per image, in order; of several tasks without `task` a dict of them by name. What is an image:
        `manylabel.data.given_image`. `workers`: processes that decode image files beside the model.

        One image alone that cannot be read raises a DecodeError; among several it gives an answer with an `error`.
        """
        return list(self.stream(images, task=task, score=score, workers=workers))

    def stream(
        self,
        images: ImageLike | Iterable[ImageLike],
        advance: Callable[[int], None] = lambda _: None,
        task: str | None = None,
        score: float | None = None,
        workers: int = 0,
    ) -> Iterator[Any]:
        """The same one by one, for any number of images in bounded memory."""
        if task is not None or len(self.bundles) == 1:
            one = self.of(task, score)
            return (answers[one.bundle.name] for answers in _stream([one], images, advance, workers))
        each = [self.of(name, score if self.finds_objects(name) else None) for name in self.bundles]
        return _stream(each, images, advance, workers)


def _stream(
    each: Sequence[AnyTaskPredictor],
    images: ImageLike | Iterable[ImageLike],
    advance: Callable[[int], None],
    workers: int,
) -> Iterator[dict[str, Any]]:
    """Answers by task; an image is read once for all of them."""
    sides = [one.at_least for one in each]
    at_least = None if None in sides else max(side for side in sides if side is not None)
    decoding = Decoding({one.bundle.name: one.prepared for one in each}, at_least)
    for batch in batched(decoding.stream(images, workers), min(one.batch_size for one in each)):
        for answers in zip(*(one.answers(batch) for one in each), strict=True):
            yield {one.bundle.name: answer for one, answer in zip(each, answers, strict=True)}
        advance(len(batch))


def batched(items: Iterable[Prepared], size: int) -> Iterator[list[Prepared]]:
    items = iter(items)
    while batch := list(islice(items, size)):
        yield batch
